import { internalError } from "../apis/failures.ts";
import type { CacheMiss } from "../core/cache-miss.ts";
import type { Engine, EngineHealth, ModelInfo } from "../core/engine.ts";
import type { GenerationEvent, GenerationFailure } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";

/**
 * What is asked and told about engines. Requests and events travel as JSON: what `v8` writes of deeply nested values, it does not always
 * read again, and JSON takes half the time.
 */
export const engineTopics = {
  /** Asked by a worker: `OpenMessage` → `EngineState`. */
  open: "engine.open",
  /** Told by a worker: the number of an engine that it needs no more. */
  close: "engine.close",
  /** Told by a worker: `GenerateMessage`. */
  generate: "engine.generate",
  /** Told by a worker: `TakenMessage`. */
  taken: "engine.taken",
  /** Told by a worker: the number of a generation whose reader has left. */
  leave: "engine.leave",
  /** Asked by a worker: `LookUpMessage` → `LookUpAnswer`. */
  lookUp: "engine.look-up",
  /** Told by a worker: the number of a look-up whose asker has left. */
  lookUpLeft: "engine.look-up-left",
  /** Told by the primary: JSON of `EventsMessage`. */
  events: "engine.events",
  /** Told by the primary, before a generation's first events: `MissedMessage`. */
  missed: "engine.missed",
  /** Told by the primary: `StateMessage`. */
  state: "engine.state",
} as const;

/** An engine as its workers see it. */
export interface EngineState {
  readonly models: readonly ModelInfo[];
  readonly health: EngineHealth;
  readonly abilities: readonly Ability[];
}

/** What an engine may be able to do besides generating. */
export type Ability = "countTokens" | "tokenize" | "detokenize" | "applyTemplate" | "slots" | "embed" | "rerank";

export const abilities: readonly Ability[] = [
  "countTokens",
  "tokenize",
  "detokenize",
  "applyTemplate",
  "slots",
  "embed",
  "rerank",
];

export interface OpenMessage {
  readonly name: string;
  /** By which number it is known from now on. */
  readonly engine: number;
}

export interface GenerateMessage {
  readonly engine: number;
  /** The worker's number for the generation. */
  readonly id: number;
  /** JSON of a `GenerationRequest`. */
  readonly request: string;
}

/** So many further batches of a generation were taken by its reader. */
export type TakenMessage = readonly [id: number, batches: number];

/** Batches of generations, in order; null: the generation is over without a further event. */
export type EventsMessage = readonly (readonly [id: number, batch: readonly GenerationEvent[] | null])[];

export type MissedMessage = readonly [id: number, miss: CacheMiss];

export type StateMessage = readonly [engine: number, state: EngineState];

export interface LookUpMessage {
  readonly engine: number;
  readonly id: number;
  readonly about: Ability;
  /** JSON of what the engine's method takes. */
  readonly request: string;
}

export type LookUpAnswer<A extends Ability = Ability> =
  | { readonly value: Awaited<ReturnType<NonNullable<Engine[A]>>> }
  | { readonly failure: GenerationFailure };

/** So many batches may be under way or wait for their reader: an engine does not run further ahead of it. */
export const mostAhead = 8;

/** A failure that can be copied: of its cause, what the log shows. */
export function portableFailure(failure: GenerationFailure): GenerationFailure {
  const { cause } = failure;
  if (cause === undefined || typeof cause === "string") return failure;
  return { ...failure, cause: cause instanceof Error ? (cause.stack ?? cause.message) : String(JSON.stringify(cause)) };
}

/** The same for events. */
export function portableBatch(batch: readonly GenerationEvent[]): readonly GenerationEvent[] {
  const last = batch.at(-1);
  if (last?.type !== "end" || !("failure" in last.end)) return batch;
  const failure = portableFailure(last.end.failure);
  return failure === last.end.failure ? batch : [...batch.slice(0, -1), { ...last, end: { ...last.end, failure } }];
}

/** Whatever was thrown. */
export function failureOf(error: unknown): GenerationFailure {
  return portableFailure((error instanceof FailureError ? error : internalError(error)).failure);
}
