import type { FailureKind, GenerationFailure } from "./events.ts";

/**
 * A failure that becomes an `end` event or an error body. Never thrown across `Engine.generate`.
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

/** An invalid request: 400. */
export function invalidRequest(message: string, param: string | null = null, code: string | null = null): FailureError {
  return new FailureError({ kind: "invalid-request", message, status: 400, param, code });
}

/** The kind of a failure, by its HTTP status. */
export function kindOfStatus(status: number): FailureKind {
  return kinds[status] ?? (status < 500 ? "invalid-request" : "internal");
}

const kinds: Readonly<Record<number, FailureKind>> = {
  401: "authentication",
  403: "permission",
  404: "not-found",
  408: "timeout",
  413: "too-large",
  429: "rate-limited",
  502: "bad-answer",
  503: "unavailable",
  504: "timeout",
  529: "overloaded",
};
