import { budgetLevels, monthLeftMs, nanodollars } from "./spending.ts";
import type { Budget, BudgetLevel, BudgetPeriod, RequestUsage, Spent, UsageRow } from "./spending.ts";

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
  readonly budget?: Budget | undefined;
}

/** The remainder of a rate limit. */
export interface Level {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until the limit is fully available again. */
  readonly resetMs: number;
}

/** The levels of the limited rates, and of the budgets. */
export interface Levels {
  readonly requests?: Level;
  readonly tokens?: Level;
  readonly budgets?: readonly BudgetLevel[];
}

/** A request that exceeds a limit. Nothing was taken. Amounts of a budget are in nanodollars. */
export interface Refusal {
  readonly bound: "requests" | "tokens" | "day" | "concurrency" | `budget-${BudgetPeriod}`;
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
  /**
   * Ends the request, and replaces what was taken and reserved by the tokens and the money that it cost. `usage`: for the table of what was
   * used; absent: it used nothing. Further calls do nothing.
   */
  end(tokens: number, usage?: RequestUsage): void;
}

/** Counts the usage under each name. */
export interface Limiter {
  /**
   * Takes a request whose prompt costs about `tokens`, and reserves `reserved` tokens for its answer until it ends. Both count
   * immediately, so concurrent requests exceed a limit only by their cost beyond that. If the process dies, the reservation expires.
   * `tokens` 0: the request costs none, and only the limits of requests apply. `cost`: what prompt and answer may cost, in nanodollars,
   * which is taken from the budgets; if the process dies, it stays spent. Never rejects.
   */
  take(
    name: string,
    limits: UsageLimits,
    tokens: number,
    reserved?: number,
    cost?: number,
  ): Promise<LimitLease | Refusal>;
  /** The current usage under a name. */
  use(name: string, limits: UsageLimits): Promise<Use>;
  /** What was used, from a day (its number since 1970) on. */
  usage(fromDay: number): Promise<readonly UsageRow[]>;
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
  readonly spent: Spent;
  /** Unix time in milliseconds, by the clock that counts. */
  readonly unixMs: number;
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

export function levelsOf(use: Use, { requestsPerMinute, tokensPerMinute, budget }: UsageLimits): Levels {
  return {
    ...(budget && { budgets: budgetLevels(budget, use.spent) }),
    ...(requestsPerMinute !== undefined && { requests: level(use.requests, requestsPerMinute) }),
    ...(tokensPerMinute !== undefined && { tokens: level(use.tokens, tokensPerMinute) }),
  };
}

function level(used: number, limit: number): Level {
  const remaining = Math.max(0, Math.floor(limit - used + tolerance));
  return { limit, remaining, resetMs: Math.ceil((used * minuteMs) / limit) };
}

/**
 * The refusal of a request with `tokens` tokens that may cost `cost` nanodollars; undefined if it fits. If it exceeds several limits: the
 * one with the longest wait.
 */
export function refusalOf(use: Use, limits: UsageLimits, tokens: number, cost: number): Refusal | undefined {
  const { requestsPerMinute, tokensPerMinute, tokensPerDay, concurrency, budget = {} } = limits;
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
  if (cost > 0) {
    const { day, month, total } = use.spent;
    beyond("budget-day", nanodollarsOr(budget.day), day, cost, () => use.dayLeftMs);
    beyond("budget-month", nanodollarsOr(budget.month), month, cost, () => monthLeftMs(use.unixMs));
    beyond("budget-total", nanodollarsOr(budget.total), total, cost, () => Infinity);
  }
  return longest;
}

function nanodollarsOr(dollars: number | undefined): number | undefined {
  return dollars === undefined ? undefined : nanodollars(dollars);
}
