/** What the requests under one name may use. An absent bound is none. */
export interface Limits {
  readonly requestsPerMinute?: number | undefined;
  readonly tokensPerMinute?: number | undefined;
  /** Of a day in UTC. */
  readonly tokensPerDay?: number | undefined;
  /** Requests that are open at once. */
  readonly concurrency?: number | undefined;
  /** The tokens that a request reserves for its answer if it does not limit its answer itself. */
  readonly answerTokens?: number | undefined;
}

/** What is left of a rate. */
export interface Level {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until all of it is there again. */
  readonly resetMs: number;
}

/** Of the rates that are limited. */
export interface Levels {
  readonly requests?: Level;
  readonly tokens?: Level;
}

/** A request that is beyond a bound. Nothing was taken for it. */
export interface Refusal {
  readonly bound: "requests" | "tokens" | "day" | "concurrency";
  readonly limit: number;
  readonly used: number;
  readonly asked: number;
  /** Until there is room for such a request, as far as known; Infinity: there never will be. */
  readonly waitMs: number;
  readonly levels: Levels;
}

/** A request that was taken. */
export interface Lease {
  readonly levels: Levels;
  /** Ends the request. Replaces what was taken and reserved for it by the `tokens` that it cost. Further calls do nothing. */
  end(tokens: number): void;
}

/** Counts what is used under each name. */
export interface Limiter {
  /**
   * Takes a request whose prompt costs about `tokens`, and reserves `reserved` tokens for its answer until it ends. Both count from now on, so
   * requests that run at the same time pass a bound only by what they cost beyond that. If the process that took it dies, the reservation
   * lapses. `tokens` 0: the request costs none, so only the bounds of requests apply. Never rejects.
   */
  take(name: string, limits: Limits, tokens: number, reserved?: number): Promise<Lease | Refusal>;
  close(): Promise<void>;
}
