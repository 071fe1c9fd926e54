import { Digest } from "../../wire/core/digest.ts";
import { jsonChunks } from "../../wire/core/json-chunks.ts";
import type { Message } from "../../wire/core/message.ts";
import { inPrompt } from "../../wire/core/prompt-outline.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";

/*
 * Chooses among the URLs of an upstream by the beginning of the prompt: rendezvous hashing with bounded loads. Nothing is stored, so
 * several processes agree without a connection. Routers that mirror the caches of their servers in a tree (SGLang's `cache_aware`) find
 * longer common beginnings, but need all requests in one process. Sources: Thaler and Ravishankar, "A Name-Based Mapping Scheme for
 * Rendezvous"; Mirrokni et al., "Consistent Hashing with Bounded Loads"; SMG's `prefix_hash` with its load factor of 1.25.
 */

/** How much more than the average of all URLs one URL may have to do. */
const loadFactor = 1.25;
/** A URL with fewer outstanding requests is never passed over: servers generate several answers in parallel, llama.cpp four by default. */
const minLoad = 4;

/** The characters of each system message that count. What changes in one, such as a date, is usually at its end. */
const maxSystemCharacters = 1024;
/** The characters of the first other message that count. */
const maxFirstCharacters = 32 * 1024;

/**
 * Identifies a conversation by what stays the same in all its requests: the owner, the model, the beginnings of the system messages, and
 * the first message after them; of a text, its first 1024 characters.
 */
export function conversationKey({ owner = "", model, prompt }: GenerationRequest): string {
  const digest = new Digest().add(JSON.stringify([owner, model]));
  if (prompt.kind === "text") {
    const [first = ""] = prompt.prompts;
    return digest.add(JSON.stringify(first.slice(0, maxSystemCharacters))).value;
  }
  for (const message of prompt.messages) {
    const isSystem = message.role === "system" || message.role === "developer";
    digest.add(`\0${message.role}\0`).add(beginningOf(message, isSystem ? maxSystemCharacters : maxFirstCharacters));
    if (!isSystem) break;
  }
  return digest.value;
}

/** Returns the beginning of what a message says. */
export function beginningOf({ content }: Message, maxCharacters: number): string {
  if (content === null) return "";
  if (typeof content === "string") return content.slice(0, maxCharacters);
  let text = "";
  for (const part of content) {
    if (text.length >= maxCharacters) break;
    const chunks = part.type === "text" ? [part.text] : jsonChunks(inPrompt(part), maxSystemCharacters);
    for (const chunk of chunks) {
      text += chunk.slice(0, maxCharacters - text.length);
      if (text.length >= maxCharacters) break;
    }
  }
  return text;
}

/** A URL as it is chosen. */
export interface LoadedUrl {
  readonly url: string;
  readonly outstanding: number;
}

/**
 * Returns the URL of a conversation: the one with the highest hash of both, unless it has too much to do; then the next one by hash. A
 * URL that is added or removed moves only its own conversations. `urls` must not be empty.
 */
export function urlOfConversation<Url extends LoadedUrl>(urls: readonly Url[], key: string): Url {
  const total = urls.reduce((sum, { outstanding }) => sum + outstanding, 0);
  const maxLoad = Math.max(minLoad, Math.ceil((loadFactor * (total + 1)) / urls.length));
  const ranked = urls.map((target) => ({ target, rank: new Digest().add(key).add(target.url).value }));
  let chosen: (typeof ranked)[number] | undefined;
  for (const candidate of ranked) {
    if (candidate.target.outstanding >= maxLoad) continue;
    if (!chosen || candidate.rank > chosen.rank) chosen = candidate;
  }
  // The average is below the maximum, so a URL with less exists.
  if (!chosen) throw new Error("An upstream has no URL.");
  return chosen.target;
}
