import { invalidRequest } from "../../core/failure.ts";
import type { GenerationRequest, Limits, Sampling } from "../../core/request.ts";
import type { AskedAnswer } from "../choices-answer.ts";
import type { RequestDraft } from "./draft.ts";
import { invalidValue } from "./refusals.ts";

/** The members of a request that do not depend on the endpoint. */
export function sharedMembers(
  draft: RequestDraft,
  id: string,
  body: Readonly<Record<string, unknown>>,
): Mutable<Omit<GenerationRequest, "prompt">> {
  const { model, n, extra, stream, outputs, reasoningEffort, reasoningInText, verbosity } = draft;
  const [output] = outputs;
  // Member by member: every request comes through here, and spreading what may not be there costs more than all else in it.
  const members: Mutable<Omit<GenerationRequest, "prompt">> = {
    id,
    model,
    sampling: sampling(draft),
    limits: limits(draft),
    wantsUsage: draft.streamOptions?.include_usage ?? false,
    stream,
    extra,
    passthrough: { dialect: draft.endpoint, body },
  };
  if (n !== undefined) members.n = n;
  if (output) members.output = output.constraint;
  if (reasoningEffort !== undefined) members.reasoning = { effort: reasoningEffort };
  if (reasoningInText) members.reasoning = { ...members.reasoning, inText: true };
  if (draft.thinkingBudget !== undefined)
    members.reasoning = { ...members.reasoning, budgetTokens: draft.thinkingBudget };
  if (draft.prediction !== undefined) members.prediction = draft.prediction;
  if (draft.tokenIds) members.wantsTokenIds = true;
  if (draft.promptLogprobs !== undefined) members.promptLogprobs = { top: draft.promptLogprobs };
  if (draft.progress && stream) members.wantsProgress = true;
  if (hasRunningUsage(draft)) members.wantsRunningUsage = true;
  if (verbosity !== undefined) members.verbosity = verbosity;
  if (draft.includeTimings) members.wantsTimings = true;
  return members;
}

type Mutable<T> = { -readonly [Member in keyof T]: T[Member] };

/** What the draft says of the answer's form; what tools decide is added by the chat endpoint. */
export function askedAnswer(draft: RequestDraft): Mutable<AskedAnswer> {
  const { stream, streamOptions, includeReasoning, includeTimings, includeStopString } = draft;
  if (streamOptions && !stream) {
    const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    if (draft.profile.judgesAsVendor) throw invalidRequest(message, "stream_options");
    draft.warnings.push(message);
  }
  if (draft.promptLogprobs !== undefined && stream)
    throw invalidValue("prompt_logprobs", "it is not available in a stream.");
  const includeObfuscation = streamOptions?.include_obfuscation ?? undefined;
  const asked: Mutable<AskedAnswer> = {
    stream,
    includeUsage: streamOptions?.include_usage ?? false,
    logprobs: false,
    namedToolChoice: false,
    legacyFunctions: false,
    includeTimings,
  };
  if (includeObfuscation !== undefined) asked.includeObfuscation = includeObfuscation;
  if (includeReasoning !== undefined) asked.includeReasoning = includeReasoning;
  if (includeStopString) asked.includeStopString = includeStopString;
  if (draft.tokenIds) asked.includeTokenIds = true;
  if (draft.promptLogprobs !== undefined) asked.includePromptLogprobs = true;
  if (draft.progress && stream) asked.includeProgress = true;
  if (hasRunningUsage(draft)) asked.includeRunningUsage = true;
  return asked;
}

/** vLLM's `continuous_usage_stats` needs `include_usage`, there and here. */
function hasRunningUsage({ stream, streamOptions }: RequestDraft): boolean {
  return stream && streamOptions?.include_usage === true && streamOptions.continuous_usage_stats === true;
}

function sampling({ sampling, xtc, dry }: RequestDraft): Sampling {
  const { probability = 0, threshold = 0.1 } = xtc;
  const { multiplier = 0 } = dry;
  if (probability > 0) sampling.xtc = { probability, threshold };
  if (multiplier > 0) sampling.dry = { ...dry, multiplier };
  return sampling;
}

function limits({ limits, maxTokens, maxCompletionTokens }: RequestDraft): Limits {
  const budget = Math.min(maxTokens ?? Infinity, maxCompletionTokens ?? Infinity);
  if (Number.isFinite(budget)) limits.maxTokens = budget;
  return limits;
}
