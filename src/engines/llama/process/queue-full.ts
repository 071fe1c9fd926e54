import type { GenerationFailure } from "../../../generation/event.ts";

/** All slots are busy and the queue is at its bound. */
export function queueFull(waiting: number): GenerationFailure {
  return {
    message: `The model is busy and ${waiting} choices are already waiting for it. Please retry after a moment.`,
    status: 429,
    kind: "overloaded",
    param: null,
    code: "rate_limit_exceeded",
    retryAfterSeconds: 1,
  };
}
