import { FailureError } from "../core/failure.ts";

/** What a store rejects with, as a failure that a client is told; a `FailureError` is one already. */
export function storeFailure(error: unknown): FailureError {
  if (error instanceof FailureError) return error;
  return new FailureError({
    kind: "unavailable",
    message: "What is stored cannot be reached just now. Please try again later.",
    status: 503,
    param: null,
    code: null,
    retryAfterSeconds: 1,
    cause: error,
  });
}
