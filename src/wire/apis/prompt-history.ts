import type { CacheMiss } from "../core/cache-miss.ts";
import { brokenPrefix, divergenceOf, likenessTo, tokensOf } from "../core/compare-outlines.ts";
import type { BrokenPrefix } from "../core/compare-outlines.ts";
import { outlinePrompt } from "../core/prompt-outline.ts";
import type { PromptOutline } from "../core/prompt-outline.ts";
import type { GenerationRequest } from "../core/request.ts";
import type { Steps } from "../core/steps.ts";

/* Says why a source reports few cached tokens: compares the outline of a request with those of earlier requests. */

/** A request that was sent. */
interface SentPrompt {
  readonly outline: PromptOutline;
  readonly scope: string;
  /** In milliseconds. */
  readonly at: number;
  /** The server that got it. */
  readonly server: string;
  readonly size: number;
  /** As the source counted them. */
  promptTokens?: number;
}

/** What a source reported of a request. */
export interface ReportedCache {
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

/** Conversations with more messages are not compared. */
const maxMessages = 5000;
/** The requests of one owner and model that are remembered, and the messages of all requests together: about 50 MB. */
const maxPerScope = 32;
const maxSize = 100_000;
/** Shorter beginnings are not cached by every vendor: OpenAI and Anthropic cache from 1,024 tokens. */
const minReusable = 1024;
/** Caches keep blocks of tokens, so a few more than the new ones are always processed: 10 %, or 256. */
const minMissedShare = 0.1;
const minMissed = 256;
/** How long caches of vendors keep a prompt by default: five minutes. Source: Anthropic's and OpenAI's guides to prompt caching. */
const keptMs = 5 * 60_000;

/** Outlines the prompt of a request, in steps; undefined for a text and for a conversation that is too long. */
export function* outlineRequest(
  request: Pick<GenerationRequest, "prompt" | "tools" | "reasoning" | "toolChoice">,
): Steps<PromptOutline | undefined> {
  const { prompt, tools, reasoning, toolChoice } = request;
  if (prompt.kind !== "chat" || prompt.messages.length > maxMessages) return undefined;
  return yield* outlinePrompt({ messages: prompt.messages, tools, options: [reasoning ?? null, toolChoice ?? null] });
}

/** A request, compared with an earlier one. */
export interface ComparedPrompt {
  /** How its prompt differs before the end of the earlier one; null: it continues an earlier prompt, or no prompt is like it. */
  readonly broken: BrokenPrefix | null;
  /** Returns why so little of the prompt was cached; null if nothing was missed that an earlier request had put there. */
  missed(reported: ReportedCache): CacheMiss | null;
}

/** The requests that an upstream got. Each is compared only with earlier ones of the same owner and model. */
export class PromptHistory {
  /** The oldest first. */
  #sent: SentPrompt[] = [];
  #size = 0;

  /** Notes that a request was sent, and compares it with the earlier one that is most like it. `now`: milliseconds. `server`: its URL. */
  sent(
    { owner = "", model }: Pick<GenerationRequest, "owner" | "model">,
    outline: PromptOutline,
    now: number,
    server: string,
  ): ComparedPrompt {
    const scope = JSON.stringify([owner, model]);
    const earlier = this.#nearest(scope, outline);
    const own: SentPrompt = { outline, scope, at: now, server, size: sizeOf(outline) };
    this.#add(own);
    return {
      broken: earlier ? brokenPrefix(earlier.outline, outline) : null,
      missed(reported) {
        own.promptTokens = reported.promptTokens;
        return earlier ? missOf(earlier, own, reported) : null;
      },
    };
  }

  #add(prompt: SentPrompt): void {
    const ofScope = this.#sent.filter(({ scope }) => scope === prompt.scope);
    if (ofScope.length >= maxPerScope) this.#remove(ofScope[0]);
    this.#sent.push(prompt);
    this.#size += prompt.size;
    while (this.#size > maxSize && this.#sent.length > 1) this.#remove(this.#sent[0]);
  }

  #remove(prompt: SentPrompt | undefined): void {
    if (!prompt) return;
    this.#sent = this.#sent.filter((other) => other !== prompt);
    this.#size -= prompt.size;
  }

  /** The earlier request that is most like this one, the latest of them. */
  #nearest(scope: string, outline: PromptOutline): SentPrompt | undefined {
    const likenessOf = likenessTo(outline);
    let nearest: SentPrompt | undefined;
    let most = 0;
    for (const prompt of this.#sent) {
      if (prompt.scope !== scope) continue;
      const likeness = likenessOf(prompt.outline);
      if (likeness > 0 && likeness >= most) [nearest, most] = [prompt, likeness];
    }
    return nearest;
  }
}

/** In messages: a sentence's digest takes about a fifth of one. */
function sizeOf({ messages, tools }: PromptOutline): number {
  const sentences = messages.reduce((sum, { details }) => sum + (details?.sentences.length ?? 0), 0);
  return messages.length + tools.length + 1 + Math.ceil(sentences / 5);
}

function missOf(earlier: SentPrompt, own: SentPrompt, { promptTokens, cachedTokens }: ReportedCache): CacheMiss | null {
  const estimated = tokensOf(own.outline);
  const scale = estimated > 0 ? promptTokens / estimated : 1;
  const found = divergenceOf(earlier.outline, own.outline);
  const at = Math.min(promptTokens, Math.round(found.at * scale));
  const known = earlier.promptTokens ?? Math.round(tokensOf(earlier.outline) * scale);
  const reusable = Math.min(known, found.cause ? promptTokens : at);
  const missed = reusable - cachedTokens;
  if (reusable < minReusable || missed < Math.max(minMissed, reusable * minMissedShare)) return null;
  if (found.cause) return { ...found.cause, at, cachedTokens, promptTokens };
  const isLate = own.at - earlier.at > keptMs;
  const cause = isLate ? "expired" : own.server !== earlier.server ? "other-server" : "not-cached";
  return { cause, at: cachedTokens, cachedTokens, promptTokens, knownTokens: reusable };
}
