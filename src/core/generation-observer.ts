import type { CacheMiss } from "./cache-miss.ts";
import type { GenerationEnd } from "./events.ts";
import type { Inspection } from "./inspection.ts";

/**
 * Follows one generation from within its engine, for metrics, traces and the log: what no event tells, because clients do not ask for it.
 * Never a key, and no text of a conversation but in the note that says so, and for whoever inspects it.
 */
export interface GenerationObserver {
  /** The engine asks another server. */
  attempt(attempt: ObservedAttempt): AttemptObserver;
  /** Much of the prompt is read again, and why: before the first events. `miss.texts` is for the client alone, and for no log. */
  cacheMissed(miss: CacheMiss): void;
  /** What was repaired in the source's answer, or adapted in the request to it: how often, by kind. Several calls add up. */
  repaired(counts: Readonly<Record<string, number>>): void;
  /** Present: somebody wants to see what is inside. */
  readonly inspection?: Inspection | undefined;
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
