import type { GenerationFailure } from "../../../core/events.ts";

/** All slots are busy and the queue is at its bound. `what` waits there. */
export function queueFull(waiting: number, what = "choices"): GenerationFailure {
  return {
    message: `The model is busy and ${waiting} ${what} are already waiting for it. Please retry after a moment.`,
    status: 429,
    kind: "overloaded",
    param: null,
    code: "rate_limit_exceeded",
    retryAfterSeconds: 1,
  };
}
