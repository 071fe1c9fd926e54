/** The limits of the requests under one name. Absent: unlimited. */
export interface UsageLimits {
  readonly requestsPerMinute?: number | undefined;
  readonly tokensPerMinute?: number | undefined;
  /** Per day in UTC. */
  readonly tokensPerDay?: number | undefined;
  /** The maximum number of open requests. */
  readonly concurrency?: number | undefined;
  /** The tokens that a request reserves for its answer if it does not limit its answer itself. */
  readonly answerTokens?: number | undefined;
}

/** The remainder of a rate limit. */
export interface Level {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until the limit is fully available again. */
  readonly resetMs: number;
}

/** The levels of the limited rates. */
export interface Levels {
  readonly requests?: Level;
  readonly tokens?: Level;
}

/** A request that exceeds a limit. Nothing was taken. */
export interface Refusal {
  readonly bound: "requests" | "tokens" | "day" | "concurrency";
  readonly limit: number;
  readonly used: number;
  readonly asked: number;
  /** The estimated time until such a request fits; Infinity: it never fits. */
  readonly waitMs: number;
  readonly levels: Levels;
}

/** A request that was admitted. */
export interface LimitLease {
  readonly levels: Levels;
  /** Ends the request, and replaces the taken and reserved tokens by its cost. Further calls do nothing. */
  end(tokens: number): void;
}

/** Counts the usage under each name. */
export interface Limiter {
  /**
   * Takes a request whose prompt costs about `tokens`, and reserves `reserved` tokens for its answer until it ends. Both count
   * immediately, so concurrent requests exceed a limit only by their cost beyond that. If the process dies, the reservation expires.
   * `tokens` 0: the request costs none, and only the limits of requests apply. Never rejects.
   */
  take(name: string, limits: UsageLimits, tokens: number, reserved?: number): Promise<LimitLease | Refusal>;
  close(): Promise<void>;
}

/**
 * The current usage under one name. Rates are token buckets, as at OpenAI and Anthropic: usage drains evenly, one limit per minute.
 * Source: https://platform.claude.com/docs/en/api/rate-limits.
 */
export interface Use {
  /** Requests and tokens that have not drained yet. May exceed the limit if a request cost more than was taken. */
  readonly requests: number;
  readonly tokens: number;
  /** Tokens of the current day in UTC. */
  readonly today: number;
  readonly dayLeftMs: number;
  /** Requests that are open. */
  readonly open: number;
}

const minuteMs = 60_000;
/** The suggested delay of a request that waits for another one to end, in milliseconds. */
const openWaitMs = 1000;
/** For rounding errors in sums of fractions. */
const tolerance = 1e-6;

/** The remainder of an amount after `ms` milliseconds. */
export function drained(amount: number, perMinute: number | undefined, ms: number): number {
  return perMinute === undefined ? 0 : Math.max(0, amount - (Math.max(0, ms) * perMinute) / minuteMs);
}

export function levelsOf(use: Use, { requestsPerMinute, tokensPerMinute }: UsageLimits): Levels {
  return {
    ...(requestsPerMinute !== undefined && { requests: level(use.requests, requestsPerMinute) }),
    ...(tokensPerMinute !== undefined && { tokens: level(use.tokens, tokensPerMinute) }),
  };
}

function level(used: number, limit: number): Level {
  const remaining = Math.max(0, Math.floor(limit - used + tolerance));
  return { limit, remaining, resetMs: Math.ceil((used * minuteMs) / limit) };
}

/** The refusal of a request with `tokens` tokens; undefined if it fits. If it exceeds several limits: the one with the longest wait. */
export function refusalOf(use: Use, limits: UsageLimits, tokens: number): Refusal | undefined {
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
