import type { BudgetBound, GenerationFailure } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";

/** The rest of a key's rate limit. */
export interface RateLevel {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until the limit is fully reset. */
  readonly resetMs: number;
}

/** The limited rates: requests and tokens per minute. */
export interface RateLevels {
  readonly requests?: RateLevel;
  readonly tokens?: RateLevel;
}

/** A request that exceeds a limit of its key. Amounts of a budget are in nanodollars. */
export interface BeyondLimit {
  readonly bound: "requests" | "tokens" | "day" | "concurrency" | BudgetBound;
  readonly limit: number;
  readonly used: number;
  readonly asked: number;
  /** Infinity: it will never fit. */
  readonly waitMs: number;
}

/** OpenAI's headers for rate limits. Source: https://platform.openai.com/docs/guides/rate-limits, "Rate limits in headers". */
export function openaiLimitHeaders(levels: RateLevels): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const rate of ["requests", "tokens"] as const) {
    const level = levels[rate];
    if (!level) continue;
    headers[`x-ratelimit-limit-${rate}`] = String(level.limit);
    headers[`x-ratelimit-remaining-${rate}`] = String(level.remaining);
    headers[`x-ratelimit-reset-${rate}`] = goDuration(level.resetMs);
  }
  return headers;
}

/**
 * 429 in the words of OpenAI: `rate_limit_exceeded`, with the rate as its type; `insufficient_quota` for a budget that is spent. Source:
 * OpenAI's error codes (https://platform.openai.com/docs/guides/error-codes) and bodies quoted in issue threads. `name`: the key's. `model`: as
 * the request names it. `nowMs`: Unix time.
 */
export function rateLimitReached(
  beyond: BeyondLimit,
  name: string,
  model: string | undefined,
  nowMs: number,
): FailureError {
  const { bound, limit, used, asked, waitMs } = beyond;
  if (bound === "budget-day" || bound === "budget-month" || bound === "budget-total")
    return budgetSpent({ ...beyond, bound }, name, nowMs, model);
  const counts = `Limit ${limit}, ${bound === "concurrency" ? "Open" : "Used"} ${used}, Requested ${asked}.`;
  const waits = Number.isFinite(waitMs);
  // Prevents retries that cannot succeed. Source: the SDKs of OpenAI and Anthropic, `x-should-retry`.
  const headers: Record<string, string> =
    !waits || bound === "day" ? { "x-should-retry": "false" } : { "retry-after-ms": String(Math.ceil(waitMs)) };
  const failure: Pick<GenerationFailure, "message" | "code" | "sourceType"> =
    bound === "day"
      ? {
          message: `You exceeded your current quota: the tokens per day of the key '${name}'. ${counts} ${
            waits
              ? "It is there again at 00:00 UTC."
              : "The request must be smaller to run: its prompt and its max_tokens together."
          }`,
          code: "insufficient_quota",
          sourceType: "insufficient_quota",
        }
      : {
          message: waits
            ? `Rate limit reached for the key '${name}' on ${rates[bound].name}: ${counts} Please try again in ${goDuration(waitMs)}.`
            : `Request too large for the key '${name}' on ${rates[bound].name}: Limit ${limit}, Requested ${asked}. The request must be smaller to run: its prompt and its max_tokens together.`,
          code: "rate_limit_exceeded",
          sourceType: rates[bound].type,
        };
  return new FailureError({
    ...failure,
    kind: "rate-limited",
    status: 429,
    param: null,
    limit: { bound, most: limit, key: name, model },
    headers,
    ...(waits && { retryAfterSeconds: waitMs / 1000 }),
  });
}

const budgets = {
  "budget-day": "for a day",
  "budget-month": "for a month",
  "budget-total": "in all",
} as const;

function budgetSpent(
  { bound, limit, used, asked, waitMs }: BeyondLimit & { readonly bound: BudgetBound },
  key: string,
  nowMs: number,
  model: string | undefined,
): FailureError {
  const untilMs = Number.isFinite(waitMs) ? nowMs + waitMs : undefined;
  const counts = `Limit ${dollarText(limit)}, Used ${dollarText(used)}, Requested ${dollarText(asked)}`;
  const remedy =
    untilMs !== undefined
      ? `It is there again on ${new Date(untilMs).toISOString().slice(0, 10)} at 00:00 UTC.`
      : asked > limit
        ? "The request must be smaller to run: its prompt and its max_tokens together."
        : "Ask the operator of this server for a larger one.";
  return new FailureError({
    message: `You exceeded your current quota: the budget of the key '${key}' ${budgets[bound]}. ${counts} (with max_tokens). ${remedy}`,
    code: "insufficient_quota",
    sourceType: "insufficient_quota",
    kind: "rate-limited",
    status: 429,
    param: null,
    limit: { bound, most: limit, key, model, ...(untilMs !== undefined && { untilMs }) },
    headers: { "x-should-retry": "false" },
    ...(untilMs !== undefined && { retryAfterSeconds: waitMs / 1000 }),
  });
}

/** `$4.25`, `$0.000315`: of nanodollars, rounded to millionths of a dollar. */
export function dollarText(nanodollars: number): string {
  const text = (nanodollars / 1e9).toFixed(6);
  return `$${text.replace(/0{1,4}$/, "")}`;
}

const rates = {
  requests: { name: "requests per min (RPM)", type: "requests" },
  tokens: { name: "tokens per min (TPM)", type: "tokens" },
  concurrency: { name: "concurrent requests", type: "requests" },
} as const;

/** A time as Go writes it, which OpenAI's gateway does: `0s`, `12ms`, `1.5s`, `6m0s`, `2h0m30s`. Source: Go, time.Duration.String. */
export function goDuration(milliseconds: number): string {
  const ms = Math.ceil(milliseconds);
  if (ms === 0) return "0s";
  if (ms < 1000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = `${(ms % 60_000) / 1000}s`;
  if (minutes === 0) return seconds;
  const hours = Math.floor(minutes / 60);
  return hours === 0 ? `${minutes}m${seconds}` : `${hours}h${minutes % 60}m${seconds}`;
}
