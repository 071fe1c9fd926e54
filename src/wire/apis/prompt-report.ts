import type { PromptProgressEvent, PromptEvent } from "../core/events.ts";
import type { JsonValue } from "./json-text.ts";

type Members = { [name: string]: JsonValue | undefined };

/** The requested members about a prompt, with vLLM's names (`ChatCompletionResponse`, `CompletionResponseChoice`). */
export function promptMembers(
  { tokens, logprobs }: PromptEvent,
  { includeTokenIds, includePromptLogprobs }: { includeTokenIds?: boolean; includePromptLogprobs?: boolean },
): Members {
  return {
    prompt_logprobs: includePromptLogprobs && logprobs ? logprobs.map((place) => place && byToken(place)) : undefined,
    prompt_token_ids: includeTokenIds ? [...tokens] : undefined,
  };
}

/** One position of a prompt in vLLM's form: by the token's id. */
function byToken(place: NonNullable<PromptEvent["logprobs"]>[number] & object): JsonValue {
  return Object.fromEntries(
    place.map(({ token, text, logprob, rank }) => [String(token), { logprob, rank, decoded_token: text }]),
  );
}

/** llama.cpp's `prompt_progress` (README of its server, `return_progress`). */
export function progressText({ total, cached, processed, ms }: PromptProgressEvent): string {
  return `,"prompt_progress":${JSON.stringify({ total, cache: cached, processed, time_ms: Math.round(ms) })}`;
}

/** Whether a member is not undefined. */
export function isMember(entry: [name: string, value: JsonValue | undefined]): entry is [string, JsonValue] {
  return entry[1] !== undefined;
}
