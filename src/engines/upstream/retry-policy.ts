import type { GenerationEnd, GenerationFailure } from "../../core/events.ts";
import { isOutOfFiles, isWorthRepeating } from "./transport-failure.ts";

/** Longer waits are the client's: it gets the status with its Retry-After at once, and its SDK waits as it should. */
const longestWaitMs = 1000;
const firstWaitMs = 200;
/** An attempt that failed after longer than this is not repeated at the same server: the client has paid for the wait once. */
const quickMs = 5000;

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

/** An attempt that failed before it told anything. */
export interface FailedAttempt {
  readonly end: Extract<GenerationEnd, { readonly failure: GenerationFailure }>;
  /** 1: the first one. */
  readonly number: number;
  readonly tookMs: number;
  /** Another server could be asked instead. */
  readonly hasOther: boolean;
}

/**
 * Milliseconds until the same model is asked again; null: not at all. Another server is asked at once. The same one is asked again only
 * where that costs the client little and spares the server: not after a time-out (the answer may still be under way there), not for a
 * certificate that will not get better, not against a rate limit. `random` is uniform in [0, 1).
 */
export function waitBefore({ end, number, tookMs, hasOther }: FailedAttempt, random: () => number): number | null {
  const { failure } = end;
  if (!isRetryable(failure)) return null;
  if (hasOther) return 0;
  if (end.kind === "idle-timeout" || tookMs > quickMs || !isWorthRepeating(failure.cause)) return null;
  const asked = failure.retryAfterSeconds;
  if (asked === undefined && failure.status === 429) return null;
  const wait = asked === undefined ? random() * firstWaitMs * 2 ** number : asked * 1000;
  return wait > longestWaitMs ? null : Math.floor(wait);
}
