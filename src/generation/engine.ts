import type { GenerationEvent } from "./event.ts";
import type { GenerationRequest } from "./request.ts";

/** Anything that generates: a local model, an upstream server, a user's program. */
export interface Engine {
  /** The models that it serves, as now known; never empty once the engine is open. */
  models(): readonly ModelInfo[];

  /**
   * Generates. A batch (the array) is what became known together and is written to the client together; it is never empty and
   * never delayed to be filled. The consumer pulls, which is the back-pressure: an engine does not run far ahead of its reader.
   *
   * Neither this call nor the iteration throws for anything foreseeable: every outcome is an `end` event. Aborting `signal` (or
   * returning from the iteration early) cancels the work at the next possible moment.
   */
  generate(request: GenerationRequest, signal: AbortSignal): AsyncIterable<readonly GenerationEvent[]>;

  /**
   * The same without a signal: returning from the iteration cancels at once, even while a batch is awaited. Absent where an engine
   * cannot do that. The server prefers it, because the making of an AbortSignal costs Node more than the reading of a request.
   */
  generateUntilReturn?(request: GenerationRequest): AsyncIterable<readonly GenerationEvent[]>;

  /** Embeds texts; absent where the engine cannot. Rejects with `FailureError`. */
  embed?(request: EmbeddingRequest, signal: AbortSignal): Promise<EmbeddingAnswer>;

  health(): EngineHealth;

  /** Stops: what runs may finish within `graceMs`, then ends with `shutdown`. Resolves when everything is released. */
  close(graceMs: number): Promise<void>;
}

export interface EmbeddingRequest {
  /** The server's id for this request. */
  readonly id: string;
  readonly model: string;
  /** Each a text or token ids. */
  readonly inputs: readonly (string | readonly number[])[];
  /** How long the vectors shall be; absent: as long as the model makes them. */
  readonly dimensions?: number;
  /** The client's JSON as it came, for engines that forward it. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface EmbeddingAnswer {
  /** One vector an input, in their order. */
  readonly vectors: readonly (readonly number[])[];
  /** null: not known. */
  readonly promptTokens: number | null;
  /** What the source calls the model. */
  readonly model?: string;
}

export interface ModelInfo {
  /** The name that clients use. */
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  readonly ownedBy: string;
  /** The id to answer with in profile `openai` where it differs from the requested one. */
  readonly resolvedId?: string;
  /** Tokens of prompt and answer together, where known. */
  readonly contextLength?: number;
  /** What it answers. A model without chat template answers text only. */
  readonly endpoints: readonly ("chat" | "completions" | "embeddings")[];
}

export interface EngineHealth {
  readonly state: "loading" | "ready" | "restarting" | "failed" | "closed";
  /** Sequences in use and in all, where the engine has slots. */
  readonly slots?: { readonly busy: number; readonly total: number };
  /** Requests that wait for a slot. */
  readonly queued?: number;
  /** Engine-specific counters (decode steps, restarts), for /health and tests. */
  readonly counters?: Readonly<Record<string, number>>;
  /** One sentence, when not ready. */
  readonly message?: string;
}
