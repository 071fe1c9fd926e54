import type * as z from "zod";
import type { GeneratedChoice } from "../core/accumulate.ts";
import { tokensInCharacters } from "../core/estimate-tokens.ts";
import type { Timings, Usage } from "../core/events.ts";
import { completionTokensDetails, completionUsage, promptTokensDetails } from "./chat/schema.ts";
import { inWireOrder, membersOf, presenceOf } from "./members.ts";

type Counts = { [name: string]: number };

/** OpenAI's `usage` object. */
export type UsageMembers = { readonly [name: string]: number | Readonly<Counts> };

/** Details that an answer has with the value 0 where the source has not counted them. */
export interface UsageZeros {
  readonly prompt: Readonly<Counts>;
  readonly completion: Readonly<Counts>;
}

/** The zeros of OpenAI's own answers. */
export const openaiUsageZeros: UsageZeros = {
  prompt: zerosOf(promptTokensDetails),
  completion: zerosOf(completionTokensDetails),
};

function zerosOf(details: z.ZodObject): Counts {
  const always = membersOf(details).filter((member) => presenceOf(member, "exact") === "always");
  return Object.fromEntries(always.map(({ name }) => [name, 0]));
}

/** Returns the `usage` of a chat answer. It has the details that the source counted, and `zeros`. */
export function chatUsage(usage: Usage, zeros?: UsageZeros): UsageMembers {
  const prompt = zeros ? { ...zeros.prompt, ...usage.promptDetails } : usage.promptDetails;
  const completion = zeros ? { ...zeros.completion, ...usage.completionDetails } : usage.completionDetails;
  const members = {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: totalTokens(usage),
    ...(prompt && { prompt_tokens_details: prompt }),
    ...(completion && { completion_tokens_details: completion }),
  };
  return inWireOrder(completionUsage, members) as UsageMembers;
}

/** Returns the `usage` of OpenAI's legacy completions: three counts, without `completion_tokens` if it is 0. */
export function bareUsage(usage: Usage): UsageMembers {
  return {
    prompt_tokens: usage.promptTokens,
    ...(usage.completionTokens !== 0 && { completion_tokens: usage.completionTokens }),
    total_tokens: totalTokens(usage),
  };
}

/** The number of characters that the model has generated. */
export function charactersOf(choice: GeneratedChoice | undefined): number {
  if (!choice) return 0;
  const { text, refusal, reasoning, toolCalls } = choice;
  const characters = (text ?? "").length + (refusal ?? "").length + (reasoning ?? "").length;
  return toolCalls.reduce((sum, { arguments: args }) => sum + args.length, characters);
}

/**
 * Estimates the usage of an answer that its source has not counted, from its length in characters. Returns `undefined` if the prompt
 * cannot be estimated. Clients read the size of the conversation from it (Claude Code), or fail without it (smolagents 1.26).
 */
export function estimatedUsage(estimatePrompt: (() => number) | undefined, characters: number): Usage | undefined {
  return estimatePrompt && { promptTokens: estimatePrompt(), completionTokens: tokensInCharacters(characters) };
}

/**
 * Returns `timings`, an extension: llama.cpp's names and units (milliseconds, tokens per second), and the time in the queue. As in
 * llama.cpp, `prompt_n` counts the tokens that were not in the cache, and `draft_n` is absent if nothing was drafted.
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
