import type { Engine } from "../generation/engine.ts";

/**
 * A configuration, as `truewire.yaml` holds it and as an object in code. Every member has the name of the command line's option
 * (`--cors-origin` is `corsOrigin`). Times are seconds, or texts such as `500ms`, `10s`, `2m`; sizes are bytes, or texts such as `32MiB`.
 */
export interface TruewireConfig {
  /** Where to listen; default 127.0.0.1. */
  readonly host?: string;
  /** Default 8080; 0 takes any free one. */
  readonly port?: number | string;
  /** Keys that clients may use; none: everybody may. */
  readonly apiKey?: string | readonly string[];
  /** Origins of the web pages that may call, or `*`; default: pages from this machine. */
  readonly corsOrigin?: string | readonly string[];
  /** The form of the answers; default `lean`. `openai` is the older name of `exact`. */
  readonly wire?: WireName | "openai";
  /** How long a stream's status is held back for its first event; default 10s. */
  readonly hold?: Duration;
  /** After so long without an event, a stream gets a comment that keeps proxies from cutting it; default 15s. */
  readonly keepAlive?: Duration;
  /** How long running answers may take to finish when the server stops; default 10s. */
  readonly grace?: Duration;
  /** Of a request's body; default 32MiB. */
  readonly bodyLimit?: Size;
  /** A request's headers must be complete within this time; default 20s. */
  readonly headerTimeout?: Duration;
  /** A whole request must have arrived within this time; default 5m. */
  readonly requestTimeout?: Duration;
  /** A connection without a request is closed after this time; default 75s. */
  readonly idleTimeout?: Duration;
  /** Default `info`. */
  readonly logLevel?: LogLevel;
  /** A file to which every streamed event is appended. */
  readonly logStream?: string;
  /** What to serve. A text is a target of the command line: `name=model.gguf`, `https://…`, `./program.ts`. */
  readonly models?: readonly (string | ModelEntry)[];
}

export type WireName = "lean" | "exact";
export type ServiceTier = "auto" | "default" | "flex" | "scale" | "priority";
export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";
export type Duration = number | string;
export type Size = number | string;

export type ModelEntry = LocalModel | UpstreamModel | ProgramModel | EngineModel;

/** What every kind of model may have. */
export interface AnswerOptions {
  /** The name that clients use. */
  readonly name?: string;
  /** Further names for it. */
  readonly aliases?: readonly string[];
  /** The form of this model's answers; default: the server's. `openai` is the older name of `exact`. */
  readonly wire?: WireName | "openai";
  /** What `system_fingerprint` says; default null. */
  readonly systemFingerprint?: string;
  /** Form `exact`: what `service_tier` says where the source says nothing; default `default`. */
  readonly serviceTier?: ServiceTier;
  /**
   * Form `exact`: whether choices have a `logprobs` member when nobody asked for log probabilities. Default: by the model's name, as
   * OpenAI has it: not those of reasoning, audio and search models (`o4-mini`, `gpt-5…`, `gpt-audio`, `…-search-preview`).
   */
  readonly logprobsKey?: boolean;
  /** Names of the members that carry reasoning; default `reasoning_content`. */
  readonly reasoningFields?: readonly ("reasoning_content" | "reasoning")[];
}

/** A GGUF file, run by llama.cpp. */
export interface LocalModel extends AnswerOptions {
  readonly kind: "local";
  /** A GGUF file, or `hf:owner/repo[:quant]`. */
  readonly path: string;
  /** Tokens of prompt and answer together, for each slot; default: what the model was trained on, at most 8192. */
  readonly contextSize?: number | string;
  /** Answers that are generated at once; default 4. */
  readonly slots?: number | string;
  /** CPU threads; default: all cores but one. */
  readonly threads?: number | string;
  /** Layers on a GPU: as many as fit (`auto`, the default), none (`off`), or so many. */
  readonly gpu?: "auto" | "off" | number;
  /** Tokens that are evaluated in one pass at most; default 512. */
  readonly batchSize?: number | string;
  /** A file with a Jinja chat template, in place of the model's own. */
  readonly chatTemplate?: string;
  /** How the model writes tool calls and reasoning: a name, or a description (docs/formats.md); default: found from the template. */
  readonly toolFormat?: string | Readonly<Record<string, unknown>>;
  /** Answers that may wait for a slot; more are refused with 429. Default 64. */
  readonly queueLimit?: number | string;
  /** Where `hf:` models are kept; default: a folder in the home directory. */
  readonly modelsFolder?: string;
  /** Used where a request does not say. */
  readonly defaults?: GenerationDefaults;
}

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
}

/** A server that speaks OpenAI's API, or nearly. */
export interface UpstreamModel extends AnswerOptions {
  readonly kind: "upstream";
  /** Its base URL (`http://localhost:11434/v1`). Several serve the same models; a request goes to the one with the least to do. */
  readonly url: string | readonly string[];
  /** The key it wants, sent as `Authorization: Bearer …`. */
  readonly key?: string;
  /** Sent with every request; they win over Truewire's own. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The models to serve: the name that clients use → the upstream's name, or a list of names that are the same for both. Absent: those
   * that it lists, kept up to date.
   */
  readonly models?: Readonly<Record<string, string>> | readonly string[];
  /** A model (as clients call it) → models of this upstream that stand in for it, in order, when it fails before its first event. */
  readonly fallbacks?: Readonly<Record<string, readonly string[]>>;
  /** How its requests must look, where that differs from what clients send. */
  readonly requests?: UpstreamRequests;
  /** The upstream takes only `n: 1`: several choices are several calls. */
  readonly singleChoice?: boolean;
  /** How the models write tool calls and reasoning, where the upstream leaves them in the text; `auto`: any known way. */
  readonly toolFormat?: string | Readonly<Record<string, unknown>>;
  readonly timeouts?: UpstreamTimeouts;
  /** Further attempts before the first event; default 2. */
  readonly retries?: number | string;
  readonly tls?: UpstreamTls;
  /** The longest event of a stream, and the longest answer without a stream; default 16MiB. */
  readonly answerLimit?: Size;
  /** Pass on what it adds to OpenAI's answers (citations, annotations): all, or the members named. Default: nothing. */
  readonly passExtra?: boolean | readonly string[];
}

export interface UpstreamRequests {
  /** Which member limits an answer's length; default: the one that the client used. */
  readonly maxTokensMember?: "max_tokens" | "max_completion_tokens";
  /** The role of instructions; what comes as the other one is renamed. Default: as the client has it. */
  readonly instructionRole?: "system" | "developer";
  /** It only knows the legacy `functions`. */
  readonly legacyFunctions?: boolean;
  /** Members that it refuses. */
  readonly drop?: readonly string[];
  /** Members that it calls otherwise: OpenAI's name → its name. */
  readonly rename?: Readonly<Record<string, string>>;
  /** Members that are added to every request; they win over the client's. */
  readonly add?: Readonly<Record<string, unknown>>;
}

export interface UpstreamTimeouts {
  /** Until the connection stands; default 10s. */
  readonly connect?: Duration;
  /** Until the first event: a long prompt takes its time. Default 10m. */
  readonly firstEvent?: Duration;
  /** Of silence after that; default 2m. */
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

/** A module of the user's own, or the function itself. */
export interface ProgramModel extends AnswerOptions {
  readonly kind: "program";
  /** A file; in code also the program itself. */
  readonly program: unknown;
  /** Load it anew when its file changes. */
  readonly watch?: boolean;
  /** Threads for a synchronous program. */
  readonly threads?: number | string;
  /** How it writes tool calls and reasoning, where it leaves them in its text; default: it does not. */
  readonly toolFormat?: string | Readonly<Record<string, unknown>>;
}

/** An engine made by the caller: in code only. */
export interface EngineModel extends AnswerOptions {
  readonly kind: "engine";
  readonly engine: Engine;
}
