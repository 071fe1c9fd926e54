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

/**
 * What is used under one name just now. Rates are token buckets, as OpenAI and Anthropic have them: what was used drains away evenly, a
 * whole limit in a minute. Source: https://platform.claude.com/docs/en/api/rate-limits.
 */
export interface Use {
  /** Requests and tokens that have not drained yet. More than the limit: a request cost more than was taken for it. */
  readonly requests: number;
  readonly tokens: number;
  /** Tokens of this day in UTC. */
  readonly today: number;
  readonly dayLeftMs: number;
  /** Requests that are open. */
  readonly open: number;
}

const minuteMs = 60_000;
/** How often a request that only waits for another one to end had better ask again. */
const openWaitMs = 1000;
/** Sums of fractions are not exact. */
const tolerance = 1e-6;

/** What is left of an amount after some time. */
export function drained(amount: number, perMinute: number | undefined, ms: number): number {
  return perMinute === undefined ? 0 : Math.max(0, amount - (Math.max(0, ms) * perMinute) / minuteMs);
}

export function levelsOf(use: Use, { requestsPerMinute, tokensPerMinute }: Limits): Levels {
  return {
    ...(requestsPerMinute !== undefined && { requests: level(use.requests, requestsPerMinute) }),
    ...(tokensPerMinute !== undefined && { tokens: level(use.tokens, tokensPerMinute) }),
  };
}

function level(used: number, limit: number): Level {
  const remaining = Math.max(0, Math.floor(limit - used + tolerance));
  return { limit, remaining, resetMs: Math.ceil((used * minuteMs) / limit) };
}

/** Why there is no room for a further request with so many tokens: of several bounds, the one to wait for longest. */
export function refusalOf(use: Use, limits: Limits, tokens: number): Refusal | undefined {
  const { requestsPerMinute, tokensPerMinute, tokensPerDay, concurrency } = limits;
  const levels = levelsOf(use, limits);
  let longest: Refusal | undefined;
  const beyond = (
    bound: Refusal["bound"],
    limit: number | undefined,
    used: number,
    asked: number,
    wait: (over: number, limit: number) => number,
  ): void => {
    if (limit === undefined || used + asked <= limit + tolerance) return;
    const waitMs = asked > limit ? Infinity : wait(used + asked - limit, limit);
    if (longest === undefined || waitMs > longest.waitMs)
      longest = { bound, limit, used: Math.ceil(used - tolerance), asked, waitMs, levels };
  };
  const drains = (over: number, limit: number): number => Math.ceil((over * minuteMs) / limit);
  beyond("concurrency", concurrency, use.open, 1, () => openWaitMs);
  beyond("requests", requestsPerMinute, use.requests, 1, drains);
  if (tokens > 0) {
    beyond("tokens", tokensPerMinute, use.tokens, tokens, drains);
    beyond("day", tokensPerDay, use.today, tokens, () => use.dayLeftMs);
  }
  return longest;
}
