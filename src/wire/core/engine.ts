import type { ClientKey } from "./client-key.ts";
import type { GenerationEvent, Usage } from "./events.ts";
import type { GenerationObserver } from "./generation-observer.ts";
import type { GenerationRequest } from "./request.ts";

/** An iteration of batches. */
export interface GenerationIterator extends AsyncIterator<readonly GenerationEvent[]> {
  /**
   * Present if batches can be delivered without a promise for each. Calls `take` with each batch until it returns false, or no further batch
   * can be delivered in this way; then it resolves, and `next` continues. Rejects with what `take` throws. undefined: no batch can now.
   */
  follow?(take: (batch: readonly GenerationEvent[]) => boolean): Promise<void> | undefined;
}

/** A source of generations: a local model, an upstream server, or a user's program. */
export interface Engine {
  /**
   * The models that it serves now; empty while its server does not answer yet. An engine should return the same array until something
   * changes.
   */
  models(): readonly ModelInfo[];

  /**
   * Generates. A batch (the array) contains the events that became known together, and is written to the client together. It is never
   * empty and never delayed. The consumer pulls batches, which gives back-pressure: an engine does not run far ahead of its consumer.
   *
   * Returning from the iteration cancels the generation, even while a batch is awaited: a pending `next` resolves as done. `cancellable`
   * makes such an iteration from a generator that takes an AbortSignal. Neither this call nor the iteration throws: every outcome is an
   * `end` event. `observer` is notified of facts that are not events.
   */
  generate(request: GenerationRequest, observer?: GenerationObserver): AsyncIterable<readonly GenerationEvent[]>;

  /** The kinds of questions that `ask` answers now. Absent: none. */
  questions?(): readonly QuestionKind[];

  /**
   * Answers a question about a model, or embeds or ranks texts. Only kinds that `questions` lists may be asked: see `canAnswer`. Rejects
   * with `FailureError`, or with the reason of `signal` when that is aborted.
   */
  ask?<K extends QuestionKind>(
    question: EngineQuestion<K>,
    signal: AbortSignal,
    observer?: GenerationObserver,
  ): Promise<EngineAnswer<K>>;

  health(): EngineHealth;

  /** What the servers of an upstream accept. Absent: the engine is no upstream. */
  profiles?(): readonly ServerProfileReport[];

  /**
   * Forgets what was learned about a model of an upstream: at all of its servers, or at that of `url`; all lessons, or that with the id
   * `lesson`. Returns the ids of the forgotten ones. Absent: the engine is no upstream.
   */
  forget?(model: string, which: { readonly url?: string; readonly lesson?: string }): readonly string[];

  /** The URLs of an upstream. Absent: the engine is no upstream. */
  urls?(): readonly UpstreamUrl[];

  /** Closes the engine: open generations may finish within `graceMs`, then end with `shutdown`. Resolves when all resources are released. */
  close(graceMs: number): Promise<void>;
}

/** The requests and answers of each kind of question. */
export interface QuestionTypes {
  /** The number of tokens in the prompt that the model's chat template makes of a request. */
  readonly "count-tokens": { readonly request: GenerationRequest; readonly answer: number };
  /** The conversation in fewer items, as an object of the API of its request. */
  readonly compact: { readonly request: GenerationRequest; readonly answer: Readonly<Record<string, unknown>> };
  /** The tokens of a text or a conversation. */
  readonly tokenize: { readonly request: TokenizeRequest; readonly answer: Tokenization };
  /** The text of tokens, control tokens included. */
  readonly detokenize: { readonly request: DetokenizeRequest; readonly answer: string };
  /** The prompt that the model's chat template makes of a conversation. */
  readonly "apply-template": { readonly request: GenerationRequest; readonly answer: string };
  /** The state of each slot. */
  readonly slots: { readonly request: null; readonly answer: readonly SlotState[] };
  /** Ends the reasoning of a running answer, by the id of its request; its text follows. False: it is not reasoning. */
  readonly "end-reasoning": { readonly request: { readonly id: string }; readonly answer: boolean };
  /** The current usage of a running answer, by the id of its request; `null` if the request is not running. */
  readonly usage: { readonly request: { readonly id: string }; readonly answer: Usage | null };
  readonly embed: { readonly request: EmbeddingRequest; readonly answer: EmbeddingAnswer };
  readonly rerank: { readonly request: RerankRequest; readonly answer: RerankAnswer };
}

export type QuestionKind = keyof QuestionTypes;

/** A question to an engine: `{ kind, request }`. */
export type EngineQuestion<K extends QuestionKind = QuestionKind> = {
  readonly [P in K]: { readonly kind: P; readonly request: QuestionTypes[P]["request"] };
}[K];

export type EngineAnswer<K extends QuestionKind = QuestionKind> = QuestionTypes[K]["answer"];

/** One function for each kind of question. */
export type QuestionHandlers<K extends QuestionKind = QuestionKind> = {
  readonly [P in K]: (
    request: QuestionTypes[P]["request"],
    signal: AbortSignal,
    observer?: GenerationObserver,
  ) => Promise<QuestionTypes[P]["answer"]>;
};

/** Whether an engine answers questions of a kind now. */
export function canAnswer(engine: Engine, kind: QuestionKind): engine is Engine & Required<Pick<Engine, "ask">> {
  return engine.ask !== undefined && engine.questions?.().includes(kind) === true;
}

export interface EmbeddingRequest {
  /** The server's id for this request. */
  readonly id: string;
  readonly model: string;
  /** Texts or token ids. */
  readonly inputs: readonly (string | readonly number[])[];
  /** The length of the vectors; default: the model's. */
  readonly dimensions?: number;
  /** The owner of the client's key, if clients have keys: owners are served in turn. */
  readonly owner?: string;
  /** See `GenerationRequest`. */
  readonly clientKey?: ClientKey;
  /** Unknown members, unchanged. */
  readonly extra: Readonly<Record<string, unknown>>;
}

export interface EmbeddingAnswer {
  /** One vector for each input, in order. */
  readonly vectors: readonly (readonly number[])[];
  /** null: unknown. */
  readonly promptTokens: number | null;
  /** The source's name of the model. */
  readonly model?: string;
}

export interface RerankRequest {
  /** The server's id for this request. */
  readonly id: string;
  readonly model: string;
  readonly query: string;
  readonly documents: readonly string[];
  /** Return the scores that the model computes, of any size, instead of numbers from 0 to 1. */
  readonly rawScores?: boolean;
  /** The owner of the client's key, if clients have keys: owners are served in turn. */
  readonly owner?: string;
  /** See `GenerationRequest`. */
  readonly clientKey?: ClientKey;
  /** Unknown members, unchanged. */
  readonly extra: Readonly<Record<string, unknown>>;
}

export interface RerankAnswer {
  /** One score for each document, in order; higher is more relevant. */
  readonly scores: readonly number[];
  /** null: unknown. */
  readonly promptTokens: number | null;
  /** The source's name of the model. */
  readonly model?: string;
}

export interface TokenizeRequest {
  /** The server's id for this request. */
  readonly id: string;
  readonly model: string;
  /** A conversation is tokenized as the model's chat template renders it. */
  readonly input: TextToTokenize | { readonly kind: "chat"; readonly request: GenerationRequest };
  /** Also return the bytes of each token. */
  readonly withBytes: boolean;
  /** The client's own JSON, for an upstream. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface TextToTokenize {
  readonly kind: "text";
  readonly text: string;
  /** Add the special tokens that the tokenizer adds to a text, such as BOS. */
  readonly addSpecial: boolean;
  /** Parse the names of special tokens in the text as these tokens. */
  readonly parseSpecial: boolean;
}

export interface Tokenization {
  readonly tokens: readonly number[];
  /** The bytes of each token; absent: unknown. */
  readonly bytes?: readonly (readonly number[])[];
}

export interface DetokenizeRequest {
  /** The server's id for this request. */
  readonly id: string;
  readonly model: string;
  readonly tokens: readonly number[];
}

/** One of the slots in which an engine generates concurrently. */
export interface SlotState {
  readonly id: number;
  readonly busy: boolean;
  /** The number of its request. */
  readonly task?: number;
  /** In tokens. */
  readonly contextSize: number;
  /** The tokens of the prompt, those found in the cache, and those processed. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly evaluatedTokens: number;
  readonly generatedTokens: number;
  /** The maximum number of further tokens; null: limited by the context only. */
  readonly tokensLeft: number | null;
  /** A draft model drafts for its answers. */
  readonly speculative?: boolean;
}

export interface ModelInfo {
  /** The name that clients use. */
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  readonly ownedBy: string;
  /** The date of an announced shutdown, as the upstream writes it. */
  readonly shutdownDate?: string;
  /** The id in answers of profile `exact`, if it differs from the requested one. */
  readonly resolvedId?: string;
  /** The maximum of prompt and answer together, in tokens, if known. */
  readonly contextLength?: number;
  /** The maximum length of an answer, in tokens, if known. */
  readonly maxOutputTokens?: number;
  /** Its LoRA adapters that requests may select. */
  readonly adapters?: readonly ModelAdapter[];
  /**
   * With `limits.maxTokens` 0 it puts the prompt into its prompt cache and generates nothing: "local" by itself, "upstream" by a request to
   * a server that may bill it. Absent: it does not.
   */
  readonly prewarms?: "local" | "upstream";
  /** Whether it takes images. Absent: unknown. */
  readonly takesImages?: boolean;
  /** Whether it takes audio. Absent: unknown. */
  readonly takesAudio?: boolean;
  /** Whether it calls tools. Absent: unknown. */
  readonly callsTools?: boolean;
  /** Whether it reasons. Absent: unknown. */
  readonly reasons?: boolean;
  /** Whether it continues a text before a suffix. Absent: unknown. */
  readonly fillsInMiddle?: boolean;
  /** Where a local model that is loaded computes, in words, with the reason if it is not on a GPU. */
  readonly device?: string;
  /** Facts from the file of a local model. */
  readonly file?: ModelFileFacts;
  /** Known values for requests that do not set them; later entries override earlier ones. Absent: unknown. */
  readonly defaults?: readonly ModelDefaults[];
  /**
   * What it supports: conversations (in all APIs), completions of a text, embeddings, rankings. A model without chat template has
   * completions only.
   */
  readonly endpoints: readonly ("chat" | "completions" | "embeddings" | "rerank")[];
}

/** Values for requests that do not set them, from one origin. */
export interface ModelDefaults {
  /** The engine itself, the metadata of the model's file, its chat template, the server of an upstream, or the configuration. */
  readonly origin: "engine" | "file" | "template" | "server" | "configuration";
  /** By the names of chat requests: `temperature`, `max_completion_tokens`, … */
  readonly parameters: Readonly<Record<string, number | string>>;
}

export interface ModelFileFacts {
  /** Of all its parts. */
  readonly bytes: number;
  /** Unix time in seconds. */
  readonly modified: number;
  /** `llama`, `qwen3`, … */
  readonly architecture: string;
  /** The number of parameters in words, such as `8B`; "" if the file does not contain it. */
  readonly size: string;
  /** `general.file_type`: llama.cpp's number of the quantization (`llama_ftype`). */
  readonly fileType?: number;
  /** The Jinja source of the chat template. */
  readonly template?: string;
  /** The other metadata. A list is empty where the file's is long. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface ModelAdapter {
  readonly id: number;
  readonly file: string;
  /** The default scale. */
  readonly scale: number;
}

/** What is known of a model of an upstream's server, for a person: plain data, later members override earlier ones. */
export interface ServerProfileReport {
  /** Without credentials. */
  readonly url: string;
  /** The server's name of the model. */
  readonly model: string;
  /** The server's name, and its version if it was asked. Absent: not known. */
  readonly server?: string;
  /** From the table of known servers. */
  readonly known: Readonly<Record<string, unknown>>;
  /** From probes and refusals. */
  readonly learned: Readonly<Record<string, unknown>>;
  /** What was learned, each with its id (`tools`, `drop.stop`), and when, in ISO 8601; without a date: before dates were kept. */
  readonly lessons: readonly { readonly id: string; readonly value: unknown; readonly learned?: string }[];
  /** From the configuration. */
  readonly configured: Readonly<Record<string, unknown>>;
}

/** One URL of an upstream: plain data. */
export interface UpstreamUrl {
  /** Without credentials. */
  readonly url: string;
  /** `ejected`: it receives no requests until it answers a probe. `absent`: nor does a server answer there. */
  readonly state: "ready" | "ejected" | "absent";
  /** Requests in progress. */
  readonly open: number;
  /** Attempts that failed here and were followed by another one, since the start. */
  readonly retries: number;
  /** How often it was put out of service, since the start. */
  readonly ejections: number;
  /** Its failure since the last success. */
  readonly failure?: string;
  /** With which of several keys: `key 2`. */
  readonly key?: string;
  /** What the server says is left of the key's limits, by rate: `requests`, `tokens`. */
  readonly remaining?: Readonly<Record<string, number>>;
}

export interface EngineHealth {
  /** `unloaded`: the model is not in memory. A request loads it, unless models are loaded manually. */
  readonly state: "loading" | "ready" | "restarting" | "failed" | "closed" | "unloaded";
  /** Slots in use and in total, if the engine has slots. */
  readonly slots?: { readonly busy: number; readonly total: number };
  /** Requests that wait for a slot, or for the model to load. */
  readonly queued?: number;
  /** Another model needs its memory: it is unloaded when its answers have ended. */
  readonly wanted?: boolean;
  /** Engine-specific counters (decode steps, restarts), for /health and tests. */
  readonly counters?: Readonly<Record<string, number>>;
  /** A sentence on why it is not ready. */
  readonly message?: string;
}
