import type { GenerationRequest, Sampling } from "../../core/request.ts";
import type { OllamaModelState } from "../ollama/context.ts";
import type { RepairId } from "../tolerant/repairs.ts";

/**
 * What a server accepts in a request, as plain data. Each member has a default for unknown servers. `knownServers` lists servers that
 * differ, and the configuration's `requests` can set any member.
 */
export interface ServerProfile {
  /** The server's name of the model; default: the client's. */
  readonly model?: string;
  /** The member that limits the answer's length; default: the client's. */
  readonly maxTokensMember?: "max_tokens" | "max_completion_tokens";
  /** The role of instructions; `any`: the client's. Default: `system` for chat servers, `any` for others. */
  readonly instructionRole?: "system" | "developer" | "any";
  /** Whether the server accepts system messages anywhere, or only one at the beginning; default `first`. */
  readonly systemMessages?: "anywhere" | "first";
  /** The server accepts tools of type `custom`, and `allowed_tools` as a choice; default false. */
  readonly customTools?: boolean;
  /** The server accepts images in the results of tools; default false. */
  readonly toolImages?: boolean;
  /** The server accepts a user's message directly after the result of a tool; default true. */
  readonly userAfterTool?: boolean;
  /** The server accepts `reasoning_effort` for every model; default false: it is sent only for models that are known to reason. */
  readonly reasoningEffort?: boolean;
  /** The server accepts `thinking_token_budget`; default false. */
  readonly reasoningBudget?: boolean;
  /** The server accepts reasoning in assistant messages; default true. */
  readonly reasoningHistory?: boolean;
  /** The server accepts `stream_options`; default true. If false, it must always report usage. */
  readonly streamOptions?: boolean;
  /** The form of the ids of calls; `nine`: exactly nine letters or digits. Default `any`. */
  readonly callIds?: "any" | "nine";
  /** The server accepts the members that OpenAI's APIs have in common, such as `metadata`; default false. */
  readonly sharedMembers?: boolean;
  /** The server accepts only the legacy `functions`; default: `tools`, to which legacy requests are converted. */
  readonly legacyFunctions?: boolean;
  /** Members that the server refuses. */
  readonly drop?: readonly string[];
  /** Members with another name on the server: OpenAI's name → the server's. */
  readonly rename?: Readonly<Record<string, string>>;
  /** Members that are added to every request. They override the client's. */
  readonly add?: Readonly<Record<string, unknown>>;
  /** Only for Ollama's own API. */
  readonly ollama?: OllamaModelState;
}

/** Records an adaptation of a request. */
export type NoteAdaptation = (id: RepairId) => void;

export type RequestBody = { [name: string]: unknown };

/**
 * Completes the body of a request for one server: model, stream, usage, then the changes of the profile. Usage is requested if and only if
 * the client requested it (answers without a stream always have it).
 */
export function finishRequestBody(body: RequestBody, request: GenerationRequest, profile: ServerProfile): RequestBody {
  body["model"] = profile.model ?? request.model;
  if (request.stream) {
    body["stream"] = true;
    const options = { ...(body["stream_options"] as RequestBody | null | undefined) };
    delete options["include_usage"];
    if (request.wantsUsage) options["include_usage"] = true;
    if (request.wantsRunningUsage) options["continuous_usage_stats"] = true;
    omit(body, "stream_options");
    if (profile.streamOptions !== false && Object.keys(options).length > 0) body["stream_options"] = options;
  } else {
    omit(body, "stream");
    omit(body, "stream_options");
  }
  if (profile.maxTokensMember) {
    const limit = body["max_completion_tokens"] ?? body["max_tokens"];
    delete body["max_completion_tokens"];
    delete body["max_tokens"];
    if (limit !== undefined && limit !== null) body[profile.maxTokensMember] = limit;
  }
  return changedBody(body, profile);
}

/** Drops, renames and adds the members of a body that the profile lists, for any API. */
export function changedBody(body: RequestBody, profile: ServerProfile): RequestBody {
  for (const name of profile.drop ?? []) delete body[name];
  for (const [name, theirs] of Object.entries(profile.rename ?? {})) {
    if (body[name] === undefined) continue;
    body[theirs] = body[name];
    delete body[name];
  }
  return Object.assign(body, profile.add);
}

/** Omits a member from the JSON. `delete` would make the object slow to read afterwards. */
function omit(body: RequestBody, name: string): void {
  if (name in body) body[name] = undefined;
}

/** The sampling parameters and limits of a request, with OpenAI's names and the common names of other servers. */
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

/** With ids only in OpenAI's form; with texts in llama.cpp's form. */
function writeBias({ logitBias, textBias }: Sampling): unknown {
  if (textBias === undefined) return logitBias;
  const ids = Object.entries(logitBias ?? {}).map(([token, bias]) => [Number(token), bias]);
  return [...ids, ...textBias.map(({ text, bias }) => [text, bias])];
}

export function withoutUndefined(members: RequestBody): RequestBody {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** A server whose profile differs from the defaults. */
interface KnownServer {
  /** Host names, or their ends (with a leading dot). */
  readonly hosts?: readonly string[];
  /** The owners in the server's model list (`owned_by`). */
  readonly owners?: readonly string[];
  readonly profile: ServerProfile;
}

const openAi: ServerProfile = {
  instructionRole: "any",
  systemMessages: "anywhere",
  customTools: true,
  reasoningEffort: true,
  sharedMembers: true,
};

const knownServers: readonly KnownServer[] = [
  // https://platform.openai.com/docs/api-reference/chat/create: `max_tokens` is deprecated, and refused for models that reason.
  { hosts: ["api.openai.com"], profile: { ...openAi, maxTokensMember: "max_completion_tokens" } },
  { hosts: [".openai.azure.com"], profile: openAi },
  // https://openrouter.ai/docs/api-reference/parameters: `reasoning_effort`, passed on only to models that reason.
  { hosts: ["openrouter.ai"], profile: { reasoningEffort: true } },
  // vllm/entrypoints/openai/chat_completion/protocol.py of vllm-project/vllm: ChatCompletionRequest.
  { owners: ["vllm"], profile: { reasoningEffort: true, reasoningBudget: true } },
  // The server of ggml-org/llama.cpp ignores members that it does not know.
  { owners: ["llamacpp"], profile: { reasoningEffort: true } },
  // https://docs.mistral.ai/api/endpoint/chat has none of these members and refuses others (`extra_forbidden`); the order of messages and
  // the form of ids: src/mistral_common/protocol/instruct/validator.py of mistralai/mistral-common.
  {
    hosts: ["api.mistral.ai", "codestral.mistral.ai"],
    owners: ["mistralai"],
    profile: { streamOptions: false, reasoningHistory: false, callIds: "nine", userAfterTool: false },
  },
];

/**
 * The profile of a known server, by the host of its URL or the owner of its model (`owned_by` in its list); empty for other servers.
 */
export function knownProfile(url: string, owner: string | undefined): ServerProfile {
  const host = URL.canParse(url) ? new URL(url).hostname : "";
  const known = knownServers.find(
    ({ hosts = [], owners = [] }) =>
      hosts.some((name) => (name.startsWith(".") ? host.endsWith(name) : host === name)) ||
      (owner !== undefined && owners.includes(owner)),
  );
  return known?.profile ?? {};
}
