import type { GenerationEnd } from "./event.ts";

/**
 * Follows one generation from within its engine, for metrics, traces and the log: what no event tells, because no client is to see it.
 * Never a key or a text of a conversation.
 */
export interface GenerationObserver {
  /** The engine asks another server. */
  attempt(attempt: ObservedAttempt): AttemptObserver;
  /** What was mended in the source's answer: how often, by kind. Several calls add up. */
  repaired(counts: Readonly<Record<string, number>>): void;
}

export interface ObservedAttempt {
  /** Of the server, without credentials. */
  readonly url: string;
  /** As the server calls it. */
  readonly model: string;
}

export interface AttemptObserver {
  /** Sent along, so that the other server's trace continues this one. */
  readonly headers: Readonly<Record<string, string>>;
  /** The attempt is over, or given up. */
  ended(end: GenerationEnd): void;
}
