import type { CacheMiss } from "../core/cache-miss.ts";
import type { EngineAnswer, EngineHealth, ModelInfo, QuestionKind } from "../core/engine.ts";
import type { GenerationEvent, GenerationFailure } from "../core/events.ts";
import { FailureError, loggedError } from "../core/failure.ts";
import { internalError } from "../apis/failures.ts";

/**
 * The messages about engines. Requests and events are JSON: `v8` cannot always read deeply nested values that it has written, and JSON
 * takes half the time.
 */
export const engineTopics = {
  /** Request of a worker: `OpenEngineMessage` → `EngineState`. */
  open: "engine.open",
  /** From a worker: the number of an engine that it no longer needs. */
  close: "engine.close",
  /** From a worker: `RemoteGenerateMessage`. */
  generate: "engine.generate",
  /** From a worker: `TakenMessage`. */
  taken: "engine.taken",
  /** From a worker: the id of a generation whose reader has left. */
  leave: "engine.leave",
  /** Request of a worker: `LookUpMessage` → `LookUpAnswer`. */
  lookUp: "engine.look-up",
  /** From a worker: the id of a look-up that is cancelled. */
  lookUpLeft: "engine.look-up-left",
  /** From the primary process: JSON of `EventsMessage`. */
  events: "engine.events",
  /** From the primary process, before the first events of a generation: `MissedMessage`. */
  missed: "engine.missed",
  /** From the primary process: `StateMessage`. */
  state: "engine.state",
} as const;

/** The state of an engine that its workers know. */
export interface EngineState {
  readonly models: readonly ModelInfo[];
  readonly health: EngineHealth;
  /** The kinds of questions that the engine answers. */
  readonly questions: readonly QuestionKind[];
}

export interface OpenEngineMessage {
  readonly name: string;
  /** The worker's number for the engine. */
  readonly engine: number;
}

export interface RemoteGenerateMessage {
  readonly engine: number;
  /** The worker's id for the generation. */
  readonly id: number;
  /** JSON of a `GenerationRequest`. */
  readonly request: string;
}

/** The reader of a generation has taken this number of further batches. */
export type TakenMessage = readonly [id: number, batches: number];

/** Batches of generations, in order; null: the generation has ended without a further event. */
export type EventsMessage = readonly (readonly [id: number, batch: readonly GenerationEvent[] | null])[];

export type MissedMessage = readonly [id: number, miss: CacheMiss];

export type StateMessage = readonly [engine: number, state: EngineState];

export interface LookUpMessage {
  readonly engine: number;
  readonly id: number;
  readonly kind: QuestionKind;
  /** JSON of the question's request. */
  readonly request: string;
}

export type LookUpAnswer<K extends QuestionKind = QuestionKind> =
  | { readonly value: EngineAnswer<K> }
  | { readonly failure: GenerationFailure };

/** The number of batches that an engine may be ahead of its reader. */
export const maxAhead = 8;

/** The failure of anything that was thrown, without values that cannot be copied. */
export function portableFailureOf(error: unknown): GenerationFailure {
  return portableFailure((error instanceof FailureError ? error : internalError(error)).failure);
}

/** The same for the failure in a batch. */
export function portableBatch(batch: readonly GenerationEvent[]): readonly GenerationEvent[] {
  const last = batch.at(-1);
  if (last?.type !== "end" || !("failure" in last.end)) return batch;
  const failure = portableFailure(last.end.failure);
  return failure === last.end.failure ? batch : [...batch.slice(0, -1), { ...last, end: { ...last.end, failure } }];
}

/** Of the cause, only the text for the log is copied. */
function portableFailure(failure: GenerationFailure): GenerationFailure {
  const { cause } = failure;
  if (cause === undefined || typeof cause === "string") return failure;
  return { ...failure, cause: loggedError(cause) };
}
