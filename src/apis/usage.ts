import type { Timings, Usage } from "../core/events.ts";

type Counts = { [name: string]: number };

/** OpenAI's `usage` object. */
export type UsageMembers = { readonly [name: string]: number | Readonly<Counts> };

/** Details that are sent as zero if the source does not count them. */
export interface UsageZeros {
  readonly prompt: Readonly<Counts>;
  readonly completion: Readonly<Counts>;
}

/** The members of OpenAI's details, in its order (recordings of 2025 and 2026). Other members of a source follow. */
const promptDetailNames = ["cached_tokens", "cache_write_tokens", "audio_tokens", "text_tokens", "image_tokens"];
const completionDetailNames = [
  "reasoning_tokens",
  "audio_tokens",
  "accepted_prediction_tokens",
  "rejected_prediction_tokens",
  "text_tokens",
];
/** `usage` of a chat answer, with the known details. `zeros`: the values of unknown ones. */
export function chatUsage(usage: Usage, zeros?: UsageZeros): UsageMembers {
  const prompt = zeros ? { ...zeros.prompt, ...usage.promptDetails } : usage.promptDetails;
  const completion = zeros ? { ...zeros.completion, ...usage.completionDetails } : usage.completionDetails;
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: totalTokens(usage),
    ...(prompt && { prompt_tokens_details: ordered(prompt, promptDetailNames) }),
    ...(completion && { completion_tokens_details: ordered(completion, completionDetailNames) }),
  };
}

/** `usage` of OpenAI's legacy completions: three numbers; `completion_tokens` is omitted if it is 0. */
export function bareUsage(usage: Usage): UsageMembers {
  return {
    prompt_tokens: usage.promptTokens,
    ...(usage.completionTokens !== 0 && { completion_tokens: usage.completionTokens }),
    total_tokens: totalTokens(usage),
  };
}

/**
 * `timings`, an extension: llama.cpp's names and units (milliseconds, tokens per second), and the time in the queue. As in llama.cpp,
 * `prompt_n` counts tokens that were not in the cache, and `draft_n` is present if there was a draft.
 */
export function timingsObject(timings: Timings, usage: Usage): Counts {
  const cached = usage.promptDetails?.["cached_tokens"];
  return {
    queued_ms: timings.queuedMs,
    ...(cached !== undefined && { cache_n: cached }),
    prompt_n: usage.promptTokens - (cached ?? 0),
    prompt_ms: timings.promptMs,
    prompt_per_second: timings.promptTokensPerSecond,
    predicted_n: usage.completionTokens,
    predicted_ms: timings.generationMs,
    predicted_per_second: timings.tokensPerSecond,
    ...(timings.draftedTokens !== undefined && { draft_n: timings.draftedTokens }),
    ...(timings.acceptedTokens !== undefined && { draft_n_accepted: timings.acceptedTokens }),
  };
}

function totalTokens({ totalTokens, promptTokens, completionTokens }: Usage): number {
  return totalTokens ?? promptTokens + completionTokens;
}

function ordered(counts: Readonly<Counts>, names: readonly string[]): Counts {
  const inOrder: Counts = {};
  for (const name of names) if (counts[name] !== undefined) inOrder[name] = counts[name];
  return { ...inOrder, ...counts };
}
