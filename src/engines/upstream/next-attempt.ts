import type { GenerationFailure } from "../../wire/core/events.ts";
import { type FailedEnd, isOutOfFiles, isWorthRepeating } from "./transport-failure.ts";

/** What came of one attempt, before the client has got anything. */
export type Outcome =
  /** The client has left, or this server stops. */
  | { readonly kind: "abandoned" }
  /** There is output, or an end without a failure. */
  | { readonly kind: "answered" }
  /** Nothing was sent: the last refusal taught something, but the target would get the same body again. */
  | { readonly kind: "unchanged" }
  /** A refusal taught something, and other generations replace this one. */
  | { readonly kind: "replaced" }
  /** A refusal taught something about the target. */
  | { readonly kind: "taught"; readonly end: FailedEnd }
  /** The request's limit on the answer's length was refused. `limit`: the one to send, in tokens; null: none. */
  | { readonly kind: "limited"; readonly end: FailedEnd; readonly limit: number | null }
  /** Another failure without output. `hasOther`: another target may be tried instead. `ofKey`: the server refused one of several keys. */
  | {
      readonly kind: "failed";
      readonly end: FailedEnd;
      readonly tookMs: number;
      readonly hasOther: boolean;
      readonly ofKey?: boolean;
    };

export type Decision =
  /** The client gets what the attempt returned. There is no other attempt. */
  | { readonly kind: "give" }
  /** The request is adapted to the lesson and sent to the same target. */
  | { readonly kind: "adapt"; readonly end: FailedEnd }
  /** The request is sent with another limit on the answer's length, to any target. */
  | { readonly kind: "limit"; readonly end: FailedEnd; readonly limit: number | null }
  /** The request is sent again after a wait, to a target that was not tried if there is one. */
  | { readonly kind: "retry"; readonly end: FailedEnd; readonly waitMs: number };

/** What may still be tried. */
export interface Allowance {
  /** The number of this attempt, from 1. One that was adapted or got another limit has the number of the one before. */
  readonly number: number;
  /** The maximum number of retries of one request. */
  readonly retries: number;
  /** See `RetryBudget`. */
  readonly hasBudget: boolean;
}

/** Longer waits are left to the client: it gets the status with its Retry-After immediately, and its SDK waits. */
const maxWaitMs = 1000;
const firstWaitMs = 200;
/** An attempt that failed after a longer time is not repeated at the same server: the client has waited once. */
const maxRepeatedMs = 5000;

/**
 * What follows from an attempt. A refusal costs neither load nor time: only "retry" is a retry. Another target is tried immediately. The same
 * target is tried again only if that costs the client little time and the server little load: not after a time-out (the server may still be
 * generating), an error of a certificate, or a rate limit. `random` is uniform in [0, 1).
 */
export function decide(outcome: Outcome, { number, retries, hasBudget }: Allowance, random: () => number): Decision {
  if (outcome.kind === "taught") return { kind: "adapt", end: outcome.end };
  if (outcome.kind === "limited") return { kind: "limit", end: outcome.end, limit: outcome.limit };
  // Each key is tried once, whatever the server says of retries: that is meant for the refused key.
  if (outcome.kind === "failed" && outcome.ofKey === true && outcome.hasOther)
    return { kind: "retry", end: outcome.end, waitMs: 0 };
  if (outcome.kind !== "failed" || number > retries || !hasBudget) return give;
  const { end, tookMs, hasOther } = outcome;
  const { status, cause, retryAfterSeconds } = end.failure;
  if (!isRetryable(end.failure)) return give;
  if (hasOther) return { kind: "retry", end, waitMs: 0 };
  if (end.kind === "idle-timeout" || tookMs > maxRepeatedMs || !isWorthRepeating(cause)) return give;
  if (status === 429 && retryAfterSeconds === undefined) return give;
  const waitMs = retryAfterSeconds === undefined ? random() * firstWaitMs * 2 ** number : retryAfterSeconds * 1000;
  return waitMs > maxWaitMs ? give : { kind: "retry", end, waitMs: Math.floor(waitMs) };
}

const give: Decision = { kind: "give" };

/** Whether the same request may succeed if it is repeated. */
function isRetryable({ status, headers }: GenerationFailure): boolean {
  if (headers?.["x-should-retry"] === "false") return false;
  return status === 408 || status === 429 || (status >= 500 && status !== 501);
}

/** Whether the failure is the server's, not the request's, and counts against the target. */
export function isServersFault({ status, cause }: GenerationFailure): boolean {
  return status >= 500 && status !== 501 && !isOutOfFiles(cause);
}

/**
 * Limits the retries of all requests to a fifth of the requests, in bursts of at most ten. Without a budget, retries multiply the load
 * on a server that fails because of its load.
 */
export class RetryBudget {
  #tokens = 10;

  get isLeft(): boolean {
    return this.#tokens >= 1;
  }

  deposit(): void {
    this.#tokens = Math.min(10, this.#tokens + 0.2);
  }

  withdraw(): void {
    this.#tokens--;
  }
}
