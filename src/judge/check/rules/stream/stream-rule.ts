import type { Exchange } from "../exchange.ts";
import type { ChoicePart, StreamView } from "../view.ts";

/* What the rules about streams share. */

type Endpoints = readonly Exchange["endpoint"][];

export const chat: Endpoints = ["chat"];
export const chatAndCompletions: Endpoints = ["chat", "completions"];
export const openAis: Endpoints = ["chat", "completions", "responses"];
/** Every API that streams. */
export const everyApi: Endpoints = [...openAis, "messages"];

/** True for a stream of chat or completions that contains an error. */
export function hasError(view: StreamView): boolean {
  return view.chunks.some((chunk) => "error" in chunk.value);
}

/** Returns the content of a choice. */
export function deltaContent(deltas: readonly ChoicePart[]): string {
  return deltas.map(({ delta }) => (typeof delta.content === "string" ? delta.content : "")).join("");
}

/** True for a delta with content that is not empty. */
export function hasContent({ delta }: ChoicePart): boolean {
  return typeof delta.content === "string" && delta.content !== "";
}
