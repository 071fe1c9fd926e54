import type { Timings, Usage } from "../generation/event.ts";
import type { ChoicesContext } from "./choices-answer.ts";

type Counts = { [name: string]: number };

/** The members of OpenAI's details, in its order; what else a source counts follows. Source: wire.md section 2.2. */
const promptDetailNames = ["cached_tokens", "cache_write_tokens", "audio_tokens", "text_tokens", "image_tokens"];
const completionDetailNames = [
  "reasoning_tokens",
  "audio_tokens",
  "accepted_prediction_tokens",
  "rejected_prediction_tokens",
  "text_tokens",
];
/** What profile `openai` shows of details even if nobody counted it. */
const promptZeros: Counts = { cached_tokens: 0, audio_tokens: 0 };
const completionZeros: Counts = {
  reasoning_tokens: 0,
  audio_tokens: 0,
  accepted_prediction_tokens: 0,
  rejected_prediction_tokens: 0,
};

/** `usage` of a chat answer. Details are shown as far as they are known; live in profile `openai`, always, as OpenAI does. */
export function chatUsage(usage: Usage, { profile, capture }: ChoicesContext): { [name: string]: number | Counts } {
  const fill = profile.name === "exact" && !capture;
  const prompt = fill ? { ...promptZeros, ...usage.promptDetails } : usage.promptDetails;
  const completion = fill ? { ...completionZeros, ...usage.completionDetails } : usage.completionDetails;
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: totalTokens(usage),
    ...(prompt && { prompt_tokens_details: ordered(prompt, promptDetailNames) }),
    ...(completion && { completion_tokens_details: ordered(completion, completionDetailNames) }),
  };
}

/**
 * `usage` of a legacy completion. OpenAI sends three numbers, and leaves `completion_tokens` out when it is 0 (wire.md section 4);
 * profile `lean` always has it, and details that are known.
 */
export function completionUsage(usage: Usage, context: ChoicesContext): { [name: string]: number | Counts } {
  if (context.profile.name === "lean") return chatUsage(usage, context);
  return {
    prompt_tokens: usage.promptTokens,
    ...(usage.completionTokens !== 0 && { completion_tokens: usage.completionTokens }),
    total_tokens: totalTokens(usage),
  };
}

/**
 * `timings`, an extension: llama.cpp's names and units (milliseconds, tokens a second), with the time in the queue beside them. As
 * there, `prompt_n` counts what was not in the cache.
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
