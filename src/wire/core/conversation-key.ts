import { Digest } from "./digest.ts";
import { jsonChunks } from "./json-chunks.ts";
import type { Message } from "./message.ts";
import { inPrompt } from "./prompt-outline.ts";
import type { GenerationRequest } from "./request.ts";

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
