import type { GenerationRequest, Sampling } from "../generation/request.ts";

/** How a server wants its requests, where that differs from what clients send. */
export interface RequestDialect {
  /** The model's name there; default: as the client named it. */
  readonly model?: string;
  /** Which member limits the answer's length; default: the one that the client used. */
  readonly maxTokensMember?: "max_tokens" | "max_completion_tokens";
  /** The role of instructions: what comes as the other one is renamed; default: as the client has it. */
  readonly instructionRole?: "system" | "developer";
  /** The server only knows the legacy `functions`; default: `tools`, which legacy requests are turned into. */
  readonly legacyFunctions?: boolean;
  /** Members that the server refuses. */
  readonly drop?: readonly string[];
  /** Members that have another name there: OpenAI's name → the server's. */
  readonly rename?: Readonly<Record<string, string>>;
  /** Members that are added to every request; they win over the client's. */
  readonly add?: Readonly<Record<string, unknown>>;
}

export type RequestBody = { [name: string]: unknown };

/**
 * Finishes the body of a request for one server: model, stream, usage, then the dialect's changes. Usage is asked for exactly when
 * the client asked (without a stream it comes anyway).
 */
export function finishRequestBody(body: RequestBody, request: GenerationRequest, dialect: RequestDialect): RequestBody {
  body["model"] = dialect.model ?? request.model;
  if (request.stream) {
    body["stream"] = true;
    const options = { ...(body["stream_options"] as RequestBody | null | undefined) };
    delete options["include_usage"];
    if (request.wantsUsage) options["include_usage"] = true;
    if (request.wantsRunningUsage) options["continuous_usage_stats"] = true;
    leave(body, "stream_options");
    if (Object.keys(options).length > 0) body["stream_options"] = options;
  } else {
    leave(body, "stream");
    leave(body, "stream_options");
  }
  if (dialect.maxTokensMember) {
    const limit = body["max_completion_tokens"] ?? body["max_tokens"];
    delete body["max_completion_tokens"];
    delete body["max_tokens"];
    if (limit !== undefined && limit !== null) body[dialect.maxTokensMember] = limit;
  }
  return changedBody(body, dialect);
}

/** A body with what the dialect drops, renames and adds, whatever the API. */
export function changedBody(body: RequestBody, dialect: RequestDialect): RequestBody {
  for (const name of dialect.drop ?? []) delete body[name];
  for (const [name, theirs] of Object.entries(dialect.rename ?? {})) {
    if (body[name] === undefined) continue;
    body[theirs] = body[name];
    delete body[name];
  }
  return Object.assign(body, dialect.add);
}

/** Leaves a member out of the JSON. Not by `delete`, which makes the object slow to read afterwards. */
function leave(body: RequestBody, name: string): void {
  if (name in body) body[name] = undefined;
}

/** The sampling and limits of a request, under OpenAI's names and those that servers share beyond them. */
export function writeSampling(request: GenerationRequest): RequestBody {
  const { sampling, limits } = request;
  return withoutUndefined({
    n: request.n,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    min_p: sampling.minP,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
    repeat_penalty: sampling.repeatPenalty,
    repeat_last_n: sampling.repeatLastN,
    logit_bias: writeBias(sampling),
    seed: sampling.seed,
    max_tokens: limits.maxTokens,
    min_tokens: limits.minTokens,
    ignore_eos: limits.ignoreEos,
    stop: limits.stop,
    stop_token_ids: limits.stopTokenIds,
    cache_prompt: limits.cachePrompt,
    lora: sampling.adapters,
    xtc_probability: sampling.xtc?.probability,
    xtc_threshold: sampling.xtc?.threshold,
    dry_multiplier: sampling.dry?.multiplier,
    dry_base: sampling.dry?.base,
    dry_allowed_length: sampling.dry?.allowedLength,
    dry_penalty_last_n: sampling.dry?.lastN,
    dry_sequence_breakers: sampling.dry?.sequenceBreakers,
    include_timings: request.wantsTimings,
    return_token_ids: request.wantsTokenIds,
    prompt_logprobs: request.promptLogprobs?.top,
    return_progress: request.wantsProgress,
  });
}

/** By ids alone as OpenAI has it; with texts as llama.cpp has it. */
function writeBias({ logitBias, textBias }: Sampling): unknown {
  if (textBias === undefined) return logitBias;
  const ids = Object.entries(logitBias ?? {}).map(([token, bias]) => [Number(token), bias]);
  return [...ids, ...textBias.map(({ text, bias }) => [text, bias])];
}

export function withoutUndefined(members: RequestBody): RequestBody {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
