import { invalidRequest } from "../../generation/failure.ts";
import type { GenerationRequest, Limits, Sampling } from "../../generation/request.ts";
import type { AskedAnswer } from "../endpoint.ts";
import type { RequestDraft } from "./draft.ts";

/** The members of a request that do not depend on the endpoint. */
export function sharedMembers(
  draft: RequestDraft,
  id: string,
  body: Readonly<Record<string, unknown>>,
): Omit<GenerationRequest, "prompt"> {
  const { model, n, extra, stream, outputs, reasoningEffort } = draft;
  const [output] = outputs;
  return {
    id,
    model,
    ...(n !== undefined && { n }),
    sampling: sampling(draft),
    limits: limits(draft),
    ...(output && { output: output.constraint }),
    ...(reasoningEffort !== undefined && { reasoning: { effort: reasoningEffort } }),
    wantsUsage: draft.streamOptions?.include_usage ?? false,
    ...(draft.includeTimings && { wantsTimings: true }),
    stream,
    extra,
    body,
  };
}

/** What the draft says of the answer's form; what tools decide is added by the chat endpoint. */
export function askedAnswer(draft: RequestDraft): AskedAnswer {
  const { stream, streamOptions, includeReasoning, includeTimings, includeStopString } = draft;
  if (streamOptions && !stream) {
    const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    if (draft.profile.name === "openai") throw invalidRequest(message, "stream_options");
    draft.warnings.push(message);
  }
  const includeObfuscation = streamOptions?.include_obfuscation ?? undefined;
  return {
    stream,
    includeUsage: streamOptions?.include_usage ?? false,
    ...(includeObfuscation !== undefined && { includeObfuscation }),
    logprobs: false,
    namedToolChoice: false,
    legacyFunctions: false,
    ...(includeReasoning !== undefined && { includeReasoning }),
    includeTimings,
    ...(includeStopString && { includeStopString }),
  };
}

function sampling({ sampling, xtc, dry }: RequestDraft): Sampling {
  const { probability = 0, threshold = 0.1 } = xtc;
  const { multiplier = 0 } = dry;
  return {
    ...sampling,
    ...(probability > 0 && { xtc: { probability, threshold } }),
    ...(multiplier > 0 && { dry: { ...dry, multiplier } }),
  };
}

function limits({ limits, maxTokens, maxCompletionTokens }: RequestDraft): Limits {
  const budget = Math.min(maxTokens ?? Infinity, maxCompletionTokens ?? Infinity);
  return { ...limits, ...(Number.isFinite(budget) && { maxTokens: budget }) };
}
