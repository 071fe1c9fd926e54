import type { GenerationFailure } from "../../generation/event.ts";
import { isOutOfFiles } from "./transport-failure.ts";

/** Waits longer than this are the client's to decide: it gets the 429 with its Retry-After. */
const longestWaitMs = 10_000;
const firstWaitMs = 200;

/**
 * How many retries there may be over all requests: a fifth of the requests, and ten at once. Without such a budget retries multiply
 * the load on a server that is failing because of its load.
 */
export class RetryBudget {
  #tokens = 10;

  deposit(): void {
    this.#tokens = Math.min(10, this.#tokens + 0.2);
  }

  withdraw(): boolean {
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}

/** Whether the same request may succeed if it is sent again. */
export function isRetryable({ status, code }: GenerationFailure): boolean {
  if (code === "insufficient_quota") return false;
  return status === 408 || status === 429 || (status >= 500 && status !== 501);
}

/** Whether the failure is the server's and not the request's: it counts against the target. */
export function isServersFault({ status, cause }: GenerationFailure): boolean {
  return status >= 500 && status !== 501 && !isOutOfFiles(cause);
}

/**
 * How long to wait before attempt `attempt` (1: the first retry): what the server asks for, else exponential with full jitter. null:
 * too long. `random` is uniform in [0, 1).
 */
export function waitBefore(attempt: number, failure: GenerationFailure, random: () => number): number | null {
  const asked = failure.retryAfterSeconds;
  if (asked !== undefined) return asked * 1000 > longestWaitMs ? null : asked * 1000;
  return Math.floor(random() * firstWaitMs * 2 ** attempt);
}
