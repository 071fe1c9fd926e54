import type { Json } from "../view.ts";

/** All tokens of a prompt: those read anew, those written to a cache and those read from one. What is no number counts as 0. */
export function promptTokens(usage: Json): number {
  const counts = [usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens];
  return counts.reduce<number>((sum, count) => sum + (typeof count === "number" ? count : 0), 0);
}
