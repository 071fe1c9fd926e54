import type { Program } from "../../wire/apis/chat/program.ts";
import type { SourceApi } from "../../wire/apis/source-port.ts";
import type { Engine } from "../../wire/core/engine.ts";
import type { AdaptationName } from "../../wire/apis/adapt/adaptation-names.ts";
import type { FallbackReason } from "../../wire/core/failure.ts";
import type { HostedProgram } from "../../wire/core/hosted-program.ts";
import type { QueueTier } from "../../wire/core/request.ts";
import type { ServerProfile } from "../../wire/apis/adapt/server-profile.ts";

/**
 * A configuration, as `truewire.yaml` holds it and as an object in code. Every member has the name of the command line's option
 * (`--cors-origin` is `corsOrigin`). Times are seconds, or texts such as `500ms`, `10s`, `2m`; sizes are bytes, or texts such as `32MiB`.
 */
export interface TruewireConfig {
  /** Where to listen; default 127.0.0.1. */
  readonly host?: string;
  /** Default 8080; 0 takes any free one. */
  readonly port?: number | string;
  /**
   * How many independent processes `truewire serve` uses, which share one port; default 1. More than one serve upstreams only, and need
   * Redis for what is stored and for limits. A server or a handler inside another program is always a part of that program's process.
   */
  readonly workers?: number | string;
  /** A PEM file with the server's certificate and those between it and its authority; the server then speaks HTTPS. */
  readonly tlsCert?: string;
  /** A PEM file with the certificate's private key. */
  readonly tlsKey?: string;
  /** Keys that clients may use; default: no key is needed. */
  readonly apiKey?: string | readonly string[];
  /** Keys by their hashes, with names and limits. */
  readonly keys?: readonly KeyEntry[];
  /** A YAML file with a list of further keys. */
  readonly keysFile?: string;
  /**
   * A JSON file that keeps what was learned about upstreams. Default: `truewire.profiles.json` next to the configuration file; without such
   * a file, it is kept in memory.
   */
  readonly profilesFile?: string;
  /** Redis or Valkey (`redis://localhost:6379`) in which instances count the limits of keys together; default: each for itself. */
  readonly sharedLimits?: string;
  /** Origins of the web pages that may call, or `*`; default: pages from this machine. */
  readonly corsOrigin?: string | readonly string[];
  /** The form of the answers; default `lean`. `openai` is the older name of `exact`. */
  readonly wire?: WireName | "openai";
  /** How long the status of a stream waits for the first event; default 10s. */
  readonly hold?: Duration;
  /** After this time without an event, a comment is sent, so that no proxy closes the stream; default 15s. */
  readonly keepAlive?: Duration;
  /** How long the reader of a stream may take nothing while others wait for its slot; default 15s. */
  readonly readerPatience?: Duration;
  /**
   * The maximum time that a stream continues after its connection is lost, for clients that ask for it with the header `X-Truewire-Resume`.
   * Default 5m; 0: not at all.
   */
  readonly resumeStreams?: Duration;
  /** How long running answers may take to finish when the server stops; default 10s. */
  readonly grace?: Duration;
  /** The largest request body; default 32MiB. */
  readonly bodyLimit?: Size;
  /** What all request bodies may take together, in each process; default: a quarter of the limit of V8's heap. */
  readonly bodyBudget?: Size;
  /** Time limit for the headers of a request; default 20s. */
  readonly headerTimeout?: Duration;
  /** Time limit for a whole request to arrive; default 5m. */
  readonly requestTimeout?: Duration;
  /** Time limit for a connection without a request; default 75s. */
  readonly idleTimeout?: Duration;
  /** Default `info`. */
  readonly logLevel?: LogLevel;
  /** The form of the log's lines; default: `pretty` on a terminal, else `json`. */
  readonly logFormat?: LogFormat;
  /** A file to which every streamed event is appended. */
  readonly logStream?: string;
  /**
   * Numbers for Prometheus at `GET /metrics`: `on` (they need a key where the API does), `open` (they need none) or `off`. Default: `on`
   * for a server, `off` for a handler.
   */
  readonly metrics?: MetricsAccess;
  /** Keys for the numbers alone; then no other key reads them. */
  readonly metricsKey?: string | readonly string[];
  /**
   * Where responses are kept for clients that refer to them (`previous_response_id`): `memory` (the default), a folder, or a Redis or
   * Valkey server (`redis://localhost:6379`).
   */
  readonly store?: string | StoreOptions;
  /**
   * What is kept of an answer for the next request of its session: values that other servers demand back, and that the client does not
   * return. It is kept in the `store`, within bounds of its own.
   */
  readonly sessions?: SessionOptions;
  /**
   * A secret of at least 32 characters, which proves values that clients return to be this installation's. Default: a random one, which is
   * kept in the `store` if that is a folder or Redis, or else in `truewire.key` next to `profilesFile`.
   */
  readonly sessionKey?: string;
  /** What loaded local models may take together, in main memory and on GPUs (`12GiB`); default: no limit. */
  readonly memory?: Size;
  /** How long a request may wait until its model fits into memory before it is refused; default 5m. */
  readonly loadWait?: Duration;
  /** Keys for the paths under `/admin`; default: none, and then only this machine may use them (docs/models.md). */
  readonly adminKey?: string | readonly string[];
  /**
   * Keep the last requests in memory, for the page's Inspect and `/admin/requests`; default: on a server that listens on this machine only
   * and needs no key of its clients. Elsewhere it needs an `adminKey`. Not with several `workers`.
   */
  readonly inspect?: boolean;
  /** What these requests may take in memory; default 32MiB. */
  readonly inspectSize?: Size;
  /** What runs the tools that an API's vendor runs in its own service, such as a web search; default: nothing runs them. */
  readonly hostedTools?: HostedToolsOptions;
  /** What to serve. A text is a target as on the command line: `name=model.gguf`, `https://…`, `./program.ts`. */
  readonly models?: readonly (string | ModelEntry)[];
}

/** A key that is known by its hash, and what it may use; a limit that is absent does not apply. */
export interface KeyEntry {
  /** Whose key it is, for logs and messages. Keys of one name count together. */
  readonly name: string;
  /** SHA-256 of the key: `sha256:` and 64 hexadecimal digits. */
  readonly hash: string;
  /** Names of the models that it may use, as clients write them; `*` matches any text. Default: all. */
  readonly models?: readonly string[];
  /** Names of the hosted tools that it may use: `web_search`, `web_fetch`, those of MCP servers and programs; `*` matches any text. Default: all. */
  readonly hostedTools?: readonly string[];
  readonly requestsPerMinute?: number | string;
  /** Of prompts and answers together. */
  readonly tokensPerMinute?: number | string;
  /** On a day in UTC, of prompts and answers together. */
  readonly tokensPerDay?: number | string;
  /** Maximum number of requests in parallel. */
  readonly concurrency?: number | string;
  /**
   * The tokens that a request without `max_tokens` reserves for its answer while it runs. Default: 1,000, but not more than a tenth of the
   * smallest limit of tokens.
   */
  readonly answerTokens?: number | string;
  /** The tier of its requests in queues, and the highest one that their `service_tier` may ask for; default `default`. */
  readonly priority?: QueueTier;
  /** When it stops working: a day (`2027-01-31`, its beginning in UTC), or a time with its zone. */
  readonly expires?: string;
}

/** What runs hosted tools (docs/hosted-tools.md). */
export interface HostedToolsOptions {
  /** The URL of a SearXNG, `brave`, `tavily`, a program's file, or a mapping. */
  readonly webSearch?: string | WebSearchOptions;
  /** Whether pages are fetched from the public internet; default false. */
  readonly webFetch?: boolean | WebFetchOptions;
  /** MCP servers by the names that clients use: a URL, a file for Node, a command, or a mapping. */
  readonly mcp?: Readonly<Record<string, string | McpServerOptions>>;
  /** The user's own functions by the type of tool that they run: `code_interpreter`, `file_search`, or any other. */
  readonly programs?: Readonly<Record<string, string | HostedProgram | HostedProgramOptions>>;
}

/** The limits of what runs a hosted tool. */
export interface HostedToolLimits {
  /** Of one call; then it ends with an error, and the answer continues. Default 30s. */
  readonly timeout?: Duration;
  /** The most calls in one answer, whatever the client allows; default 20. */
  readonly maxCalls?: number | string;
  /** The longest result, in characters; longer ones are cut. Default 100KiB. */
  readonly maxOutput?: Size;
}

export interface WebSearchOptions extends HostedToolLimits {
  /** Default `searxng`. */
  readonly engine?: "searxng" | "brave" | "tavily";
  /** Where the engine is; needed for `searxng`. */
  readonly url?: string;
  /** The key of `brave` or `tavily`. */
  readonly key?: string;
  /** A module that searches, in place of an engine; in code also a function. */
  readonly program?: string | HostedProgram;
  /** The most results of a search; default: 5, 8 or 15, by the client's `search_context_size`. */
  readonly maxResults?: number | string;
  /** The only domains, with their subdomains; default: all. */
  readonly allowedDomains?: readonly string[];
  readonly blockedDomains?: readonly string[];
}

export interface WebFetchOptions extends HostedToolLimits {
  /** The only domains, with their subdomains; default: all. */
  readonly allowedDomains?: readonly string[];
  readonly blockedDomains?: readonly string[];
  /** Hosts that may have addresses of this machine or of private networks; default: none. */
  readonly privateHosts?: readonly string[];
  /** Fetch URLs that are not in the conversation, too; default false. */
  readonly anyUrl?: boolean;
  /** The largest page or document; default 10MiB. */
  readonly maxSize?: Size;
}

/** An MCP server: a program that is started, or a URL. */
export interface McpServerOptions extends HostedToolLimits {
  readonly command?: string;
  readonly args?: readonly string[];
  /** Variables of its environment, which has few others. */
  readonly env?: Readonly<Record<string, string>>;
  /** Its working folder. */
  readonly folder?: string;
  /** Over Streamable HTTP. */
  readonly url?: string;
  /** Headers of requests to the URL; they win over those of clients. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The `connector_id` of clients for which this server stands. */
  readonly connector?: string;
  /** The functions that clients may use; default: all. */
  readonly functions?: readonly string[];
}

export interface HostedProgramOptions extends HostedToolLimits {
  /** Needed. */
  readonly program?: string | HostedProgram;
}

export interface StoreOptions {
  /** `memory`, a folder, or `redis://…`; default `memory`. */
  readonly at?: string;
  /** The most responses that memory or a folder keeps; what was not asked for longest goes first. Default 100,000. */
  readonly maxCount?: number | string;
  /** The most that memory or a folder keeps; default 256MiB. */
  readonly maxSize?: Size;
  /** How long a response is kept (`12h`, `30d`); default 30d. */
  readonly maxAge?: Duration;
}

export interface SessionOptions {
  /** Default true. */
  readonly memory?: boolean;
  /** The most entries in memory or a folder: one for each turn, and one for each of its calls. Default 100,000. */
  readonly maxCount?: number | string;
  /** The most bytes in memory or a folder; default 64MiB. */
  readonly maxSize?: Size;
  /** The largest turn; a larger one is not kept. Default 1MiB. */
  readonly maxTurn?: Size;
  /** How long a turn is kept (`12h`, `30d`); default 7d. */
  readonly maxAge?: Duration;
}

export type WireName = "lean" | "exact";
export type ServiceTier = "auto" | "default" | "flex" | "scale" | "priority" | "fast";
export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";
export type LogFormat = "json" | "pretty";
export type MetricsAccess = "on" | "open" | "off";
export type Duration = number | string;
export type Size = number | string;

export type ModelEntry = LocalModel | UpstreamModel | ProgramModel | EngineModel;

/** What every kind of model may have. */
export interface AnswerOptions {
  /** The name that clients use. */
  readonly name?: string;
  /** Further names for it; `*` matches any text: `claude-*`. */
  readonly aliases?: readonly string[];
  /** The form of this model's answers; default: the server's. `openai` is the older name of `exact`. */
  readonly wire?: WireName | "openai";
  /**
   * End an answer that repeats the same text over and over, with the finish reason for a length limit. Default: `on` for local models, `off`
   * for others.
   */
  readonly loopGuard?: "on" | "off";
  /** The value of `system_fingerprint`; default null. */
  readonly systemFingerprint?: string;
  /** Form `exact`: the value of `service_tier` when the source sends none; default `default`. */
  readonly serviceTier?: ServiceTier;
  /**
   * Form `exact`: whether choices have a `logprobs` member when no log probabilities were requested. Default: by the model's name, as
   * OpenAI has it: not those of reasoning, audio and search models (`o4-mini`, `gpt-5…`, `gpt-6…`, `gpt-audio`, `…-search-preview`).
   */
  readonly logprobsKey?: boolean;
  /**
   * Form `exact`: the model of OpenAI or Anthropic that this one represents, such as `gpt-6-luna`. What that model refuses is refused, too.
   */
  readonly standsFor?: string;
  /** Names of the members that carry reasoning; default `reasoning_content`. */
  readonly reasoningFields?: readonly ("reasoning_content" | "reasoning")[];
  /**
   * Models that answer, in order, when this one fails before its first output: a list, or one for each model by its name. Also models of
   * other entries.
   */
  readonly fallbacks?: readonly string[] | Readonly<Record<string, readonly string[]>>;
  /** The kinds of failure after which a fallback is asked; default: all but `context-length` and `content-filter`. */
  readonly fallbackOn?: readonly FallbackReason[];
}

/** A GGUF file, run by llama.cpp. */
export interface LocalModel extends AnswerOptions {
  readonly kind: "local";
  /** A GGUF file, or `hf:owner/repo[:quant]`. */
  readonly path: string;
  /** Tokens of prompt and answer together, for each slot; default: what the model was trained on, at most 8192. */
  readonly contextSize?: number | string;
  /** Number of answers that are generated in parallel; default 4. */
  readonly slots?: number | string;
  /** CPU threads; default: all cores but one. */
  readonly threads?: number | string;
  /** Layers on a GPU: as many as fit (`auto`, the default), none (`off`), or their number. */
  readonly gpu?: "auto" | "off" | number;
  /**
   * How several GPUs share the model: its layers are divided (`layer`, the default), each layer is (`row`, `tensor`), or one GPU has all
   * of it (`none`).
   */
  readonly splitMode?: "none" | "layer" | "row" | "tensor";
  /** How much of the model each GPU gets, in proportion: `[3, 1]`, or `3,1` as a text. Default: by the memory that each has free. */
  readonly tensorSplit?: readonly number[] | string;
  /** The number of the GPU that is used alone with `splitMode: none`; default 0. */
  readonly mainGpu?: number | string;
  /** Flash attention; default `auto`: where it is not slower. */
  readonly flashAttention?: "auto" | "on" | "off";
  /** How the keys of attention are kept in memory; default f16. */
  readonly cacheTypeK?: CacheType;
  /** The same of its values. A quantized type needs flash attention. */
  readonly cacheTypeV?: CacheType;
  /**
   * What may be kept in main memory of conversations that have lost their slot, and of checkpoints; `0`: nothing. Default: as much as the
   * slots have, at most 512MiB; less where memory is short.
   */
  readonly cacheMemory?: Size;
  /** A folder where what the model knows of conversations is written at a clean stop, and read from at the next start. */
  readonly keepCache?: string;
  /** The model's projector, a GGUF file with which it takes images; `off`: none. Default: the one next to the model's file. */
  readonly mmproj?: string;
  /**
   * A folder with the libraries of llama.cpp v0.5.0, a build or a release, in place of those of node-llama-cpp. Images need its libmtmd, or an
   * optional package (docs/local-models.md).
   */
  readonly llamaLibraries?: string;
  /** The most tokens that are evaluated in one pass; default 512. */
  readonly batchSize?: number | string;
  /** How long the processing of a prompt may delay the next token of running answers; default 250ms. */
  readonly maxTokenGap?: Duration;
  /** A file with a Jinja chat template, in place of the model's own. */
  readonly chatTemplate?: string;
  /** How the model writes tool calls and reasoning: a name, or a description (docs/formats.md); default: found from the template. */
  readonly toolFormat?: string | Readonly<Record<string, unknown>>;
  /** Hold the calls that the model makes by itself to the schemas of their tools, also of tools without `strict`. Default true. */
  readonly constrainCalls?: boolean;
  /** Guess how answers go on where their text repeats: where that is faster (`auto`, the default) or never (`off`). */
  readonly speculation?: "auto" | "off";
  /** A small model that drafts how answers continue, where that is faster and `speculation` allows it: a GGUF file, or a mapping. */
  readonly draft?: string | DraftEntry;
  /**
   * How one vector is made of those of a text's tokens: their mean, the first one's (`cls`), the last one's; `rank` scores documents, `none`
   * makes no embeddings. Default: as the model's file says, and none where it does not.
   */
  readonly pooling?: "mean" | "cls" | "last" | "rank" | "none";
  /** Answers that may wait for a slot, of each key; more are refused with 429. Default 64. */
  readonly queueLimit?: number | string;
  /** A model that makes no progress on a step for this long is restarted; default 2m. */
  readonly stepTimeout?: Duration;
  /** A load that makes no progress for this long fails; default 10m. */
  readonly loadTimeout?: Duration;
  /** Where `hf:` models are stored; default: a folder in the home directory. */
  readonly modelsFolder?: string;
  /** When it is loaded: at the start (`eager`, the default), with the first request (`lazy`), or by hand only (`manual`). */
  readonly load?: "eager" | "lazy" | "manual";
  /** The model is unloaded after it has been idle for this long; default: never. */
  readonly idleUnload?: Duration;
  /** The model is never unloaded in favor of another model. */
  readonly keep?: boolean;
  /** Changes of the model (LoRA) that were trained apart from it: GGUF files, of which requests may use less or more. */
  readonly adapters?: readonly AdapterEntry[];
  /** Values for requests that do not set them. */
  readonly defaults?: GenerationDefaults;
}

/** An adapter (LoRA) of a local model. */
export interface AdapterEntry {
  /** A GGUF file. */
  readonly path: string;
  /** How much of it is used where a request does not say; default 1. */
  readonly scale?: number;
}

/** A draft model. Its tokens should be those of the model that it drafts for; else text is tokenized again. */
export interface DraftEntry {
  /** A GGUF file, or `hf:owner/repo[:quant]`. */
  readonly path: string;
  /** Draft tokens of an answer at most, 1 to 16; default 15, and 8 for recurrent models. */
  readonly maxTokens?: number | string;
}

/** Numbers of 32 or 16 bits, or packed into 8, 5 or 4 bits and a scale. */
export type CacheType = "f32" | "f16" | "bf16" | "q8_0" | "q5_1" | "q5_0" | "q4_1" | "q4_0" | "iq4_nl";

/** Values for requests that do not have their own; the names are those of the API, in camel case. */
export interface GenerationDefaults {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly minP?: number;
  readonly repeatPenalty?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  readonly seed?: number;
  readonly maxTokens?: number;
  /** The most tokens of one string, where a grammar holds JSON: for small models, which do not find the end. */
  readonly maxStringTokens?: number;
  /** Maximum number of reasoning tokens of an answer, where the request sets no budget for them. */
  readonly maxReasoningTokens?: number;
}

/** A server with an OpenAI API, or nearly one. */
export interface UpstreamModel extends AnswerOptions {
  readonly kind: "upstream";
  /** Its base URL (`http://localhost:11434/v1`). Several serve the same models. */
  readonly url: string | readonly string[];
  /**
   * How one of several URLs is chosen: by the fewest open requests (`least-busy`, the default), or by the beginning of the prompt
   * (`prefix`), so that a conversation stays where its prompt is cached.
   */
  readonly balance?: "least-busy" | "prefix";
  /** The API that it speaks; default: detected. `chat`: OpenAI's chat completions; `messages`: Anthropic's; `ollama`: Ollama's own. */
  readonly api?: SourceApi;
  /** Its API key, sent as its API wants it: `Authorization: Bearer …` or `x-api-key: …`. */
  readonly key?: string;
  /** Sent with every request; they win over Truewire's own. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The models to serve: the name that clients use → the upstream's name, or a list of names that are the same for both. Absent: those
   * that it lists, kept up to date.
   */
  readonly models?: Readonly<Record<string, string>> | readonly string[];
  /** Answers that it generates in parallel, with all its URLs; further requests wait. Default: no limit. */
  readonly concurrency?: number | string;
  /** With `concurrency`: answers that may wait, of each key; more are refused with 429. Default 64. */
  readonly queueLimit?: number | string;
  /** What it accepts, where that differs from what is known or learned of it. */
  readonly requests?: UpstreamRequests;
  /**
   * What happens to an answer to a prompt that the server has cut without an error: the client gets an error (`error`, the default), or the
   * answer with a warning in the log and a header (`warn`), or the answer.
   */
  readonly onTruncation?: "error" | "warn" | "allow";
  /** Refuse requests that it would not accept, instead of adapting them; default false. */
  readonly strict?: boolean;
  /** Adaptations of requests that are switched off, by name. */
  readonly adapt?: Readonly<Partial<Record<AdaptationName, boolean | "on" | "off">>>;
  /** The upstream accepts only `n: 1`: several choices become several requests. */
  readonly singleChoice?: boolean;
  /** How an Ollama loads its models; only with Ollama's own API. */
  readonly ollama?: UpstreamOllama;
  /** How the models write tool calls and reasoning that the upstream leaves in the text; `auto`: any known format. */
  readonly toolFormat?: string | Readonly<Record<string, unknown>>;
  readonly timeouts?: UpstreamTimeouts;
  /** Further attempts before the first event; default 2. */
  readonly retries?: number | string;
  readonly tls?: UpstreamTls;
  /** The largest event of a stream, and the largest answer that is not streamed; default 16MiB. */
  readonly answerLimit?: Size;
  /** Paths that Truewire does not have, to be passed on unchanged, such as `/images/*`; `*` matches any text. Default: none. */
  readonly passPaths?: readonly string[];
  /** Members that it adds to OpenAI's (citations), to be passed on: all, or those named. Default: none. */
  readonly passExtra?: boolean | readonly string[];
}

/** What a server accepts in a request, where it differs from what is known of it. */
export type UpstreamRequests = Omit<ServerProfile, "model" | "adapt" | "ollama">;

/** Contexts are in tokens of prompt and answer together (`num_ctx`). */
export interface UpstreamOllama {
  /** The smallest context that a model is loaded with; default 8192, or the model's own `num_ctx`. */
  readonly minContext?: number;
  /** The largest one; default: what the model was trained for. */
  readonly maxContext?: number;
  /** How long a model stays loaded: seconds, or a text such as `30m`; negative: forever. Default: the server's. */
  readonly keepAlive?: number | string;
}

export interface UpstreamTimeouts {
  /** Time limit for the connection; default 10s. */
  readonly connect?: Duration;
  /** Time limit for the first event, which a long prompt delays; default 10m. */
  readonly firstEvent?: Duration;
  /** Time limit between events; default 2m. */
  readonly idle?: Duration;
}

/** Certificates are PEM files. */
export interface UpstreamTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly serverName?: string;
  /** Default true. False accepts any certificate: for tests and closed networks. */
  readonly verify?: boolean;
}

/** The user's own code: a file, or the function itself. */
export interface ProgramModel extends AnswerOptions {
  readonly kind: "program";
  /** A file; in code also the program itself, a model of the AI SDK, or an engine. */
  readonly program: string | Program | object;
  /** Reload the program when its file changes. */
  readonly watch?: boolean;
  /** Threads for a synchronous program. */
  readonly threads?: number | string;
  /** Tell clients the words of any exception; default: only of those that are meant for them (`RequestError`). */
  readonly showErrors?: boolean;
  /** How the program writes tool calls and reasoning in its text; default: it writes none. */
  readonly toolFormat?: string | Readonly<Record<string, unknown>>;
}

/** An engine made by the caller: in code only. */
export interface EngineModel extends AnswerOptions {
  readonly kind: "engine";
  readonly engine: Engine;
}
