import type { ServerProfileReport } from "../../core/engine.ts";
import type { GenerationRequest, Sampling } from "../../core/request.ts";
import type { OllamaModelState } from "../ollama/context.ts";
import type { AdaptationName } from "./adaptation-names.ts";

/** The forms of `tool_choice`. `named`: an object that names one function. */
export const toolChoiceForms = ["none", "auto", "required", "named"] as const;
/** Compilers of JSON Schema in servers. `plain`: the keywords that all of them know. */
export const schemaCompilers = ["llama.cpp", "xgrammar", "llguidance", "openai-strict", "gemini", "plain"] as const;

export type SchemaCompiler = (typeof schemaCompilers)[number];

/** The members of assistant messages in which servers expect reasoning. */
export const reasoningMembers = ["reasoning_content", "reasoning", "content"] as const;

/** Members with states of earlier turns: of calls, and of the assistant's messages. */
export const stateMembers = [
  "extra_content",
  "provider_specific_fields",
  "reasoning_details",
  "thinking_blocks",
] as const;
/** Those for which a value can stand in (`callStandIns`, `detailsStandIn`). */
export const demandedStates = ["extra_content", "provider_specific_fields", "reasoning_details"] as const;

/** The types of `response_format` that constrain an answer. */
export const outputFormats = ["json_object", "json_schema"] as const;

/**
 * What a server accepts in a request, as plain data. Each member has a default for unknown servers. `knownServers` lists servers that
 * differ, probes and refusals add what they show, and the configuration's `requests` can set any member.
 */
export interface ServerProfile {
  /** The server's name of the model; default: the client's. */
  readonly model?: string;

  /** The role of instructions; `any`: the client's. Default: `system` for chat servers, `any` for others. */
  readonly instructionRole?: "system" | "developer" | "any";
  /** Whether the server accepts system messages anywhere, only one at the beginning, or none; default `first`. */
  readonly systemMessages?: "anywhere" | "first" | "none";
  /** The server accepts consecutive messages of the user, or of the assistant; default true. */
  readonly repeatedRoles?: boolean;
  /** The server accepts a user's message directly after the result of a tool; default true. */
  readonly userAfterTool?: boolean;

  /**
   * The server accepts the texts of a message as a list of parts. true: the client's lists are sent; false: no list of texts is, and no null. Default: a
   * list of plain texts is sent as one string, which every server accepts, and a list with more, such as marks of a cache, as it is.
   */
  readonly contentParts?: boolean;

  /** The model accepts tools; default true. */
  readonly tools?: boolean;
  /** The names of tools that the server accepts; `short`: up to 64 letters, digits, `_` and `-`. Default `any`. */
  readonly toolNames?: "any" | "short";
  /** The server accepts tools of type `custom`, and `allowed_tools` as a choice; default false, and true for servers with Responses. */
  readonly customTools?: boolean;
  /** The forms of `tool_choice` that the server accepts; default: all. */
  readonly toolChoices?: readonly (typeof toolChoiceForms)[number][];
  /** The server leaves the calls of the model in the text; default: where its settings say so (`toolFormat`). */
  readonly callsInText?: boolean;
  /** The server accepts `parallel_tool_calls`; default true. */
  readonly parallelCalls?: boolean;
  /** The form of the ids of calls; `nine`: exactly nine letters or digits. Default `any`. */
  readonly callIds?: "any" | "nine";
  /** The server accepts earlier calls whose arguments are not the JSON of an object; default false. */
  readonly anyArguments?: boolean;
  /** The server accepts only the legacy `functions`; default: `tools`, to which legacy requests are converted. */
  readonly legacyFunctions?: boolean;

  /** The types of `response_format` that the server accepts in addition to `text`; default: all. */
  readonly outputFormats?: readonly (typeof outputFormats)[number][];
  /** The server accepts `strict` in tools and in `response_format`; default true. */
  readonly strictSchemas?: boolean;
  /** The compiler of JSON Schema that the server has; default: unknown, and schemas are sent as they are. */
  readonly schemaCompiler?: (typeof schemaCompilers)[number];
  /** Keywords of JSON Schema that the server refuses or ignores, such as `pattern`; default: none. */
  readonly refusedKeywords?: readonly string[];

  /** The model accepts images; default true. */
  readonly images?: boolean;
  /** The server accepts images in the results of tools; default false. */
  readonly toolImages?: boolean;
  /** The server downloads images from URLs; default true. */
  readonly imageUrls?: boolean;
  /** The media types of images that the server accepts, such as `image/png`; default: any. */
  readonly imageTypes?: readonly string[];
  /** The longest side of an image, in pixels; larger images are made smaller. Default: any. */
  readonly maxImageSide?: number;
  /** The model accepts files (parts of type `file`); default true. */
  readonly files?: boolean;

  /** The server accepts `n` greater than 1; default true. If false, several choices become several requests. */
  readonly severalChoices?: boolean;
  /** The server accepts `logprobs`; default true. If false, requests for them are refused. */
  readonly logprobs?: boolean;
  /** The member that limits the answer's length; default: the client's. */
  readonly maxTokensMember?: "max_tokens" | "max_completion_tokens";
  /** The server accepts `stream_options`; default true. If false, it must always report usage. */
  readonly streamOptions?: boolean;
  /** The server accepts the members that OpenAI's APIs have in common, such as `metadata`; default false. */
  readonly sharedMembers?: boolean;

  /** The server accepts members that other servers have added to OpenAI's APIs, such as `top_k`; default true. */
  readonly extensions?: boolean;

  /**
   * The server accepts `reasoning_effort` for every model; default false: it is sent only for models that are known to reason. Ollama accepts
   * levels of `think`; default true.
   */
  readonly reasoningEffort?: boolean;
  /** The server accepts `thinking_token_budget`; default false. */
  readonly reasoningBudget?: boolean;
  /** The server gives `chat_template_kwargs` to the model's chat template, which can switch reasoning off; default false. */
  readonly templateVariables?: boolean;
  /**
   * The server accepts reasoning in assistant messages; default true. Only for servers with Responses or Messages: true if it reads the text of
   * reasoning; default: reasoning is encrypted, or signed.
   */
  readonly reasoningHistory?: boolean;
  /** The messages of the assistant that must have reasoning, if only an empty text: those with calls, or all. Default: none. */
  readonly reasoningDemand?: "calls" | "all";
  /**
   * The member of assistant messages in which the server expects the reasoning of earlier turns, which in `content` is a part of type
   * `thinking`; default `reasoning_content`.
   */
  readonly reasoningMember?: (typeof reasoningMembers)[number];
  /** The members with states of earlier turns that the server takes; default: all that the states have. */
  readonly states?: readonly (typeof stateMembers)[number][];
  /** The member that every message with calls must have, for its first call; a documented value stands in for a missing one. Default: none. */
  readonly stateDemand?: (typeof demandedStates)[number];

  /** Only for servers with Responses: the server encrypts reasoning on request (`include`); default true. */
  readonly encryptedReasoning?: boolean;
  /** Only for servers with Responses: the ids of earlier messages and calls are sent; default true. */
  readonly itemIds?: boolean;

  /** The context size, in tokens; default: unknown. */
  readonly contextSize?: number;
  /** The server shortens a prompt that exceeds the context, without an error; default false. */
  readonly truncates?: boolean;
  /** The path, from the server's root, at which it counts or lists the tokens of a text, such as `/tokenize`; default: none. */
  readonly tokenizer?: string;
  /** The server caches the prompt up to marks in it (`cache_control`); default false, and true for servers with the Messages API. */
  readonly cacheMarks?: boolean;
  /**
   * The server caches only prompts that have a mark, and accepts one for the whole request, which requests of clients without marks get.
   * A list: only for models of these families. Default false, and true for servers with the Messages API.
   */
  readonly automaticCache?: boolean | readonly string[];
  /**
   * The server runs the tools that its API's vendor runs (`web_search`), so that they are sent to it. `false`: it runs none. Absent: not
   * known; they are sent to it unless something here runs them.
   */
  readonly hostedTools?: boolean;
  /** The server reports in `usage` how many tokens of the prompt its cache had; default: unknown. */
  readonly cacheReport?: boolean;

  /** Members that the server refuses. */
  readonly drop?: readonly string[];
  /** Members of messages that the server refuses. */
  readonly dropInMessages?: readonly string[];
  /** Members with another name on the server: OpenAI's name → the server's. */
  readonly rename?: Readonly<Record<string, string>>;
  /** Members that are added to every request. They override the client's. */
  readonly add?: Readonly<Record<string, unknown>>;
  /** Adaptations that are switched off (false); default: all are on. */
  readonly adapt?: Readonly<Partial<Record<AdaptationName, boolean>>>;
  /** Only for Ollama's own API. */
  readonly ollama?: OllamaModelState;
}

/** An entry of a server's profile. An entry of `configured` has precedence over one of `learned`, and that over one of `known`. */
export interface ProfileEntry {
  readonly name: string;
  readonly value: unknown;
  readonly origin: "known" | "learned" | "configured";
}

/** The entries of a report by name; those of the same name in the order of `known`, `learned`, `configured`. */
export function profileEntries({ known, learned, configured }: ServerProfileReport): ProfileEntry[] {
  const entries = Object.entries({ known, learned, configured }).flatMap(([origin, profile]) =>
    Object.entries(profile).map(([name, value]) => ({ name, value, origin: origin as ProfileEntry["origin"] })),
  );
  return entries.toSorted(({ name: one }, { name: other }) => (one < other ? -1 : one > other ? 1 : 0));
}

/**
 * Records an adaptation. `place`: the changed member of the request, such as `messages[3].role`. Throws `FailureError` for a source with
 * `strict`, so it is called before anything depends on the change.
 */
export type NoteAdaptation = (name: AdaptationName, place?: string) => void;

/** Whether the configuration leaves an adaptation on (`adapt: { NAME: off }` switches it off). */
export function isOn(profile: ServerProfile, name: AdaptationName): boolean {
  return profile.adapt?.[name] !== false;
}

export type RequestBody = { [name: string]: unknown };

/**
 * Completes the body of a request for one server: model, stream, usage, then the changes of the profile. Usage is requested if and only if
 * the client requested it (answers without a stream always have it). `note` is called for each adaptation.
 */
export function finishRequestBody(
  body: RequestBody,
  request: GenerationRequest,
  profile: ServerProfile,
  note: NoteAdaptation,
): RequestBody {
  body["model"] = profile.model ?? request.model;
  if (request.stream) {
    body["stream"] = true;
    const options = { ...(body["stream_options"] as RequestBody | null | undefined) };
    delete options["include_usage"];
    if (request.wantsUsage) options["include_usage"] = true;
    if (request.wantsRunningUsage) options["continuous_usage_stats"] = true;
    omit(body, "stream_options");
    const hasOptions = Object.keys(options).length > 0;
    const isRefused = profile.streamOptions === false && isOn(profile, "stream-options");
    if (hasOptions && isRefused) note("stream-options", "stream_options");
    else if (hasOptions) body["stream_options"] = options;
  } else {
    omit(body, "stream");
    omit(body, "stream_options");
  }
  const { maxTokensMember } = profile;
  if (maxTokensMember && isOn(profile, "max-tokens-member")) {
    const limit = body["max_completion_tokens"] ?? body["max_tokens"];
    const other = maxTokensMember === "max_tokens" ? "max_completion_tokens" : "max_tokens";
    if (body[other] !== undefined && body[other] !== null) note("max-tokens-member", other);
    delete body["max_completion_tokens"];
    delete body["max_tokens"];
    if (limit !== undefined && limit !== null) body[maxTokensMember] = limit;
  }
  return changedBody(body, profile, note);
}

/** Drops, renames and adds the members of a body that the profile lists, for any API. */
export function changedBody(body: RequestBody, profile: ServerProfile, note: NoteAdaptation): RequestBody {
  dropMembers(body, profile.drop ?? [], profile, note);
  for (const [name, theirs] of Object.entries(isOn(profile, "renamed-member") ? (profile.rename ?? {}) : {})) {
    if (body[name] === undefined) continue;
    note("renamed-member", name);
    body[theirs] = body[name];
    delete body[name];
  }
  return Object.assign(body, profile.add);
}

/** Drops members that the server refuses. */
export function dropMembers(
  body: RequestBody,
  names: readonly string[],
  profile: ServerProfile,
  note: NoteAdaptation,
): void {
  if (!isOn(profile, "refused-member")) return;
  for (const name of names) {
    if (body[name] === undefined) continue;
    note("refused-member", name);
    delete body[name];
  }
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

/**
 * Removes the members that OpenAI does not document from a body that was written for a client of another API, if the server accepts no
 * others (`extensions: false`). `parameters`: those of the API. Changes `body`, and calls `note` for each removed member.
 */
export function withoutExtensions(
  body: RequestBody,
  parameters: readonly { readonly name: string; readonly origin: "openai" | "extension" }[],
  profile: ServerProfile,
  note: NoteAdaptation,
): RequestBody {
  if (profile.extensions !== false || !isOn(profile, "foreign-member")) return body;
  const known = new Set(parameters.flatMap(({ name, origin }) => (origin === "openai" ? [name] : [])));
  for (const name of Object.keys(body)) {
    if (known.has(name)) continue;
    note("foreign-member", name);
    delete body[name];
  }
  return body;
}
