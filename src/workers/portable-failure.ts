import type { GenerationEvent, GenerationFailure } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";
import { internalError } from "../apis/failures.ts";

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
