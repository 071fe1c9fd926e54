import { invalidRequest } from "../../core/failure.ts";
import type { RequestDraft } from "./draft.ts";
import { invalidValue } from "./refusals.ts";

/**
 * Completes `draft.request` and returns it: the members that do not depend on the API. `body`: the request as the client sent it, for an
 * upstream of the same API.
 */
export function completeRequest(
  draft: RequestDraft,
  id: string,
  body: Readonly<Record<string, unknown>>,
): RequestDraft["request"] {
  const { request, sampling, limits, xtc, dry, maxTokens = Infinity, maxCompletionTokens = Infinity } = draft;
  const { outputs, reasoningEffort, verbosity, streamOptions } = draft;
  request.id = id;
  request.passthrough = { dialect: draft.endpoint, body };
  request.wantsUsage = streamOptions?.include_usage ?? false;
  if (hasRunningUsage(draft)) request.wantsRunningUsage = true;
  const { probability = 0, threshold = 0.1 } = xtc;
  const { multiplier = 0 } = dry;
  if (probability > 0) sampling.xtc = { probability, threshold };
  if (multiplier > 0) sampling.dry = { ...dry, multiplier };
  const limit = Math.min(maxTokens, maxCompletionTokens);
  if (Number.isFinite(limit)) limits.maxTokens = limit;
  if (outputs[0]) request.output = outputs[0].constraint;
  if (reasoningEffort !== undefined) request.reasoning = { ...request.reasoning, effort: reasoningEffort };
  if (verbosity !== undefined) request.verbosity = verbosity;
  return request;
}

/** Completes `draft.asked` and returns it. Throws `FailureError` (400) for options that do not fit together. */
export function completeRequestedAnswer(draft: RequestDraft): RequestDraft["asked"] {
  const { asked, streamOptions } = draft;
  const { stream } = draft.request;
  if (streamOptions && !stream) {
    const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    if (draft.profile.judgesAsVendor) throw invalidRequest(message, "stream_options");
    draft.warnings.push(message);
  }
  if (asked.includePromptLogprobs && stream) throw invalidValue("prompt_logprobs", "it is not available in a stream.");
  asked.stream = stream;
  asked.includeUsage = streamOptions?.include_usage ?? false;
  const obfuscation = streamOptions?.include_obfuscation ?? undefined;
  if (obfuscation !== undefined) asked.includeObfuscation = obfuscation;
  if (hasRunningUsage(draft)) asked.includeRunningUsage = true;
  return asked;
}

/** vLLM's `continuous_usage_stats` requires `include_usage` and a stream, as in vLLM. */
function hasRunningUsage({ request, streamOptions }: RequestDraft): boolean {
  return request.stream && streamOptions?.include_usage === true && streamOptions.continuous_usage_stats === true;
}
