import type { GenerationFailure } from "./event.ts";

/**
 * A failure on its way up to where it becomes an `end` event or an error body. Thrown inside rooms, never across `Engine.generate`.
 *
 * @example
 * import { FailureError, fromOpenAiMessages } from "truewire";
 *
 * try {
 *   fromOpenAiMessages([{ role: "robot", content: "Hi" }]);
 * } catch (error) {
 *   if (error instanceof FailureError) console.log(error.failure.status, error.failure.param, error.message);
 * }
 * // → 400 messages[0].role Unsupported message role: robot
 */
export class FailureError extends Error {
  readonly failure: GenerationFailure;

  constructor(failure: GenerationFailure) {
    super(failure.message, failure.cause === undefined ? undefined : { cause: failure.cause });
    this.name = "FailureError";
    this.failure = failure;
  }
}

/** A request that cannot be served as it stands: 400, OpenAI's `invalid_request_error`. */
export function invalidRequest(message: string, param: string | null = null, code: string | null = null): FailureError {
  return new FailureError({ message, status: 400, type: "invalid_request_error", param, code });
}
