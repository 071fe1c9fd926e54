import type { GenerationEvent } from "./events.ts";
import type { GenerationObserver } from "./generation-observer.ts";
import type { GenerationRequest } from "./request.ts";

/** Anything that generates: a local model, an upstream server, a user's program. */
export interface Engine {
  /** The models that it serves, as now known; empty while it stands for a server that does not answer yet. Best the same array while nothing has changed. */
  models(): readonly ModelInfo[];

  /**
   * Generates. A batch (the array) is what became known together and is written to the client together; it is never empty and
   * never delayed to be filled. The consumer pulls, which is the back-pressure: an engine does not run far ahead of its reader.
   *
   * Returning from the iteration cancels the work, even while a batch is awaited; a `next` that waits then resolves as done.
   * `cancellable` makes such an iteration of a generator that takes an AbortSignal. Nothing foreseeable is thrown, neither by this call
   * nor by the iteration: every outcome is an `end` event. `observer` hears what no event tells.
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

  /** Stops: what runs may finish within `graceMs`, then ends with `shutdown`. Resolves when everything is released. */
  close(graceMs: number): Promise<void>;
}

/** The requests and answers of each kind of question. */
export interface QuestionTypes {
  /** The number of tokens in the prompt that the model's chat template makes of a request. */
  readonly "count-tokens": { readonly request: GenerationRequest; readonly answer: number };
  /** The tokens of a text or a conversation. */
  readonly tokenize: { readonly request: TokenizeRequest; readonly answer: Tokenization };
  /** The text of tokens, control tokens included. */
  readonly detokenize: { readonly request: DetokenizeRequest; readonly answer: string };
  /** The prompt that the model's chat template makes of a conversation. */
  readonly "apply-template": { readonly request: GenerationRequest; readonly answer: string };
  /** The state of each slot. */
  readonly slots: { readonly request: null; readonly answer: readonly SlotState[] };
  readonly embed: { readonly request: EmbeddingRequest; readonly answer: EmbeddingAnswer };
  readonly rerank: { readonly request: RerankRequest; readonly answer: RerankAnswer };
}

export type QuestionKind = keyof QuestionTypes;

/** What an engine is asked beside generations: `{ kind, request }`. */
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
  /** Each a text or token ids. */
  readonly inputs: readonly (string | readonly number[])[];
  /** How long the vectors shall be; absent: as long as the model makes them. */
  readonly dimensions?: number;
  /** Whose request it is, where clients have keys: owners take turns. */
  readonly owner?: string;
  /** Members that nobody here knows, as they came. */
  readonly extra: Readonly<Record<string, unknown>>;
}

export interface EmbeddingAnswer {
  /** One vector an input, in their order. */
  readonly vectors: readonly (readonly number[])[];
  /** null: not known. */
  readonly promptTokens: number | null;
  /** What the source calls the model. */
  readonly model?: string;
}

export interface RerankRequest {
  /** The server's id for this request. */
  readonly id: string;
  readonly model: string;
  readonly query: string;
  readonly documents: readonly string[];
  /** The scores as the model computes them, of any size, in place of numbers from 0 to 1. */
  readonly rawScores?: boolean;
  /** Whose request it is, where clients have keys: owners take turns. */
  readonly owner?: string;
  /** Members that nobody here knows, as they came. */
  readonly extra: Readonly<Record<string, unknown>>;
}

export interface RerankAnswer {
  /** One for each document, in their order; the larger, the better it fits. */
  readonly scores: readonly number[];
  /** null: not known. */
  readonly promptTokens: number | null;
  /** What the source calls the model. */
  readonly model?: string;
}

export interface TokenizeRequest {
  /** The server's id for this request. */
  readonly id: string;
  readonly model: string;
  /** A conversation is told as the model's template writes it. */
  readonly input: TextToTokenize | { readonly kind: "chat"; readonly request: GenerationRequest };
  /** The bytes of each token are wanted, too. */
  readonly withBytes: boolean;
  /** The client's own JSON, for a server that is asked. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface TextToTokenize {
  readonly kind: "text";
  readonly text: string;
  /** Add what the tokenizer puts around a whole text, such as a BOS. */
  readonly addSpecial: boolean;
  /** The names of special tokens in the text mean these tokens. */
  readonly parseSpecial: boolean;
}

export interface Tokenization {
  readonly tokens: readonly number[];
  /** The bytes of each token; absent: not known. */
  readonly bytes?: readonly (readonly number[])[];
}

export interface DetokenizeRequest {
  /** The server's id for this request. */
  readonly id: string;
  readonly model: string;
  readonly tokens: readonly number[];
}

/** One of the sequences that an engine generates at the same time. */
export interface SlotState {
  readonly id: number;
  readonly busy: boolean;
  /** A number for the request that it works for. */
  readonly task?: number;
  /** Tokens that have room in it. */
  readonly contextSize: number;
  /** Tokens of the prompt, those of them that were found in the cache, and those that are evaluated. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly evaluatedTokens: number;
  readonly generatedTokens: number;
  /** How many more tokens there may be; null: as many as have room. */
  readonly tokensLeft: number | null;
}

export interface ModelInfo {
  /** The name that clients use. */
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  readonly ownedBy: string;
  /** The id that an exact answer names, where it differs from the requested one. */
  readonly resolvedId?: string;
  /** Tokens of prompt and answer together, where known. */
  readonly contextLength?: number;
  /** The most tokens that one answer may have, where known. */
  readonly maxOutputTokens?: number;
  /** Changes of it (LoRA) that requests may use; absent: it has none. */
  readonly adapters?: readonly ModelAdapter[];
  /** Whether it takes images. */
  readonly sees?: boolean;
  /**
   * What it can be asked: a conversation (by any API that carries one), text to continue, texts to embed, documents to rank. A model
   * without chat template continues text only.
   */
  readonly endpoints: readonly ("chat" | "completions" | "embeddings" | "rerank")[];
}

export interface ModelAdapter {
  readonly id: number;
  readonly file: string;
  /** How much of it is used where a request does not say. */
  readonly scale: number;
}

export interface EngineHealth {
  /** `unloaded`: it takes no memory; a request loads it, unless that is done by hand only. */
  readonly state: "loading" | "ready" | "restarting" | "failed" | "closed" | "unloaded";
  /** Sequences in use and in all, where the engine has slots. */
  readonly slots?: { readonly busy: number; readonly total: number };
  /** Requests that wait for a slot, or for the model to be loaded. */
  readonly queued?: number;
  /** Another model waits for its room: it goes when its answers have ended. */
  readonly wanted?: boolean;
  /** Engine-specific counters (decode steps, restarts), for /health and tests. */
  readonly counters?: Readonly<Record<string, number>>;
  /** One sentence, when not ready. */
  readonly message?: string;
}
