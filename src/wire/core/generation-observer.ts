import type { CacheMiss } from "./cache-miss.ts";
import type { GenerationEnd } from "./events.ts";
import type { Inspection } from "./inspection.ts";

/**
 * Observes one generation inside its engine, for metrics, traces and the log: facts that are not events, because clients do not see them.
 * They never contain a key. Only `miss.texts` and the inspection contain texts of a conversation.
 */
export interface GenerationObserver {
  /** The engine sends a request to another server. */
  attempt(attempt: ObservedAttempt): AttemptObserver;
  /** Much of the prompt was not in the cache. Called before the first event. `miss.texts` is for the client only, never for a log. */
  cacheMissed(miss: CacheMiss): void;
  /** Repairs of the source's answer and adaptations of the request to it, counted by kind. May be called several times. */
  repaired(counts: Readonly<Record<string, number>>): void;
  /**
   * What became of the states of earlier turns in a request to another server (`TurnState`). Called for each request that has turns of the
   * model; the last call counts.
   */
  turnStates?(counts: TurnStateCounts): void;
  /** Present if the request is inspected. */
  readonly inspection?: Inspection | undefined;
}

/** Numbers of states, by what became of them. */
export interface TurnStateCounts {
  /** Returned by the client, and sent. */
  readonly kept: number;
  /** Not returned by the client, and sent from the memory. */
  readonly restored: number;
  /** Turns without a state of which the memory knows nothing. */
  readonly missing: number;
  /** Made by another source, and not sent. */
  readonly foreign: number;
  /** Sent in place of a state that is missing or foreign: a value that the server documents for this. */
  readonly standIns: number;
  /** Not sent, since the server refused it. */
  readonly dropped: number;
}

export interface ObservedAttempt {
  /** The server's URL, without credentials. */
  readonly url: string;
  /** The server's name of the model. */
  readonly model: string;
}

export interface AttemptObserver {
  /** Sent with the request, so that the other server's trace continues this one. */
  readonly headers: Readonly<Record<string, string>>;
  /** The attempt has ended or was abandoned. */
  ended(end: GenerationEnd): void;
}

/**
 * Receives an engine's log lines, with level and fields (`req`: the request's id). A line never contains a key or a text of a
 * conversation.
 */
export type LogListener = (
  line: string,
  level: "debug" | "info" | "warn",
  fields?: Readonly<Record<string, unknown>>,
) => void;
