import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anthropicLimitHeaders } from "./messages/port.ts";
import { anthropicFormat } from "./messages/port.ts";
import { openaiErrorFormat } from "./api-error-format.ts";
import { exact, lean } from "./profile.ts";
import { goDuration, openaiLimitHeaders, rateLimitReached } from "./rate-limits.ts";
import type { BeyondLimit } from "./rate-limits.ts";

describe("what is left, in headers", () => {
  const requests = { limit: 60, remaining: 59, resetMs: 1000 };
  const tokens = { limit: 150_000, remaining: 149_984, resetMs: 360_000 };

  test("as OpenAI's guide shows them", () => {
    expect(openaiLimitHeaders({ requests, tokens })).toEqual({
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-remaining-requests": "59",
      "x-ratelimit-reset-requests": "1s",
      "x-ratelimit-limit-tokens": "150000",
      "x-ratelimit-remaining-tokens": "149984",
      "x-ratelimit-reset-tokens": "6m0s",
    });
  });

  test("as Anthropic's page shows them", () => {
    expect(anthropicLimitHeaders({ requests, tokens }, Date.parse("2026-07-01T12:00:00.250Z"))).toEqual({
      "anthropic-ratelimit-requests-limit": "60",
      "anthropic-ratelimit-requests-remaining": "59",
      "anthropic-ratelimit-requests-reset": "2026-07-01T12:00:02Z",
      "anthropic-ratelimit-tokens-limit": "150000",
      "anthropic-ratelimit-tokens-remaining": "149984",
      "anthropic-ratelimit-tokens-reset": "2026-07-01T12:06:01Z",
    });
  });

  test("of what is not limited, none", () => {
    expect([
      openaiLimitHeaders({}),
      anthropicLimitHeaders({ tokens }, 0)["anthropic-ratelimit-requests-limit"],
    ]).toEqual([{}, undefined]);
  });
});

test.each([
  [0, "0s"],
  [0.2, "1ms"],
  [999, "999ms"],
  [1000, "1s"],
  [1500, "1.5s"],
  [59_999, "59.999s"],
  [60_000, "1m0s"],
  [360_000, "6m0s"],
  [172_800, "2m52.8s"],
  [3_600_000, "1h0m0s"],
  [7_230_500, "2h0m30.5s"],
])("%d ms is %s", (ms, text) => {
  expect(goDuration(ms)).toBe(text);
});

test("a duration read again is the same number of milliseconds", () => {
  fc.assert(
    fc.property(fc.nat(200_000_000), (ms) => {
      const units: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
      const parts = [...goDuration(ms).matchAll(/([\d.]+)(ms|h|m|s)/g)];
      const sum = parts.reduce((all, [, number = "", unit = ""]) => all + Number(number) * (units[unit] ?? 0), 0);
      expect(Math.round(sum)).toBe(ms);
    }),
  );
});

describe("a request beyond a limit", () => {
  const told = (
    beyond: Partial<BeyondLimit>,
  ): { failure: ReturnType<typeof rateLimitReached>["failure"]; openai: unknown; anthropic: unknown } => {
    const { failure } = rateLimitReached(
      { bound: "tokens", limit: 100, used: 90, asked: 20, waitMs: 6000, ...beyond },
      "alice",
      undefined,
      Date.UTC(2026, 10, 30, 12),
    );
    const bodies = [
      openaiErrorFormat.writeFailure(failure, exact, "req_1"),
      anthropicFormat.writeFailure(failure, lean, "req_1"),
    ];
    const [openai, anthropic] = bodies.map(({ status, body }) => ({ status, ...(JSON.parse(body) as object) }));
    return { failure, openai, anthropic };
  };

  test("of tokens a minute", () => {
    const { failure, openai, anthropic } = told({});
    const message =
      "Rate limit reached for the key 'alice' on tokens per min (TPM): Limit 100, Used 90, Requested 20. Please try again in 6s.";
    expect(openai).toEqual({
      status: 429,
      error: { message, type: "tokens", param: null, code: "rate_limit_exceeded" },
    });
    expect(anthropic).toMatchObject({ status: 429, type: "error", error: { type: "rate_limit_error", message } });
    expect([failure.retryAfterSeconds, failure.headers]).toEqual([6, { "retry-after-ms": "6000" }]);
  });

  test("in Anthropic's words, in profile exact", () => {
    const words = (beyond: Partial<BeyondLimit>): string => {
      const limit: BeyondLimit = { bound: "tokens", limit: 40_000, used: 40_000, asked: 20, waitMs: 6000, ...beyond };
      const { failure } = rateLimitReached(limit, "alice", "opus", Date.UTC(2026, 10, 30, 12));
      const { body } = anthropicFormat.writeFailure(failure, exact, "req_1");
      return (JSON.parse(body) as { error: { message: string } }).error.message;
    };
    expect(words({})).toMatch(
      /^This request would exceed your organization's rate limit of 40,000 input tokens per minute \(org: alice, model: opus\)\. For details, /,
    );
    expect(words({ bound: "requests", limit: 50 })).toMatch(/ rate limit of 50 requests per minute \(/);
    expect(words({ bound: "budget-month", waitMs: 12 * 3_600_000 })).toBe(
      "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
    );
    expect(words({ bound: "concurrency" })).toMatch(/^Number of concurrent connections has exceeded your rate limit\./);
  });

  test("of a budget in money, with the day on which it is there again", () => {
    const beyond = { limit: 5e9, used: 4_999_500_000, asked: 1_250_000, waitMs: 12 * 3_600_000 };
    const { failure, openai, anthropic } = told({ ...beyond, bound: "budget-month" });
    const message =
      "You exceeded your current quota: the budget of the key 'alice' for a month. Limit $5.00, Used $4.9995, Requested $0.00125 (with max_tokens). It is there again on 2026-12-01 at 00:00 UTC.";
    expect(openai).toEqual({
      status: 429,
      error: { message, type: "insufficient_quota", param: null, code: "insufficient_quota" },
    });
    expect(anthropic).toMatchObject({ status: 429, error: { type: "rate_limit_error", message } });
    expect([failure.retryAfterSeconds, failure.headers]).toEqual([43_200, { "x-should-retry": "false" }]);
    const { failure: forever } = told({ ...beyond, bound: "budget-total", waitMs: Infinity });
    expect(forever.message).toContain("Ask the operator of this server for a larger one.");
    expect(forever.retryAfterSeconds).toBeUndefined();
  });

  test("of a day's budget", () => {
    const { failure, openai } = told({ bound: "day", waitMs: 3_600_000 });
    expect(openai).toMatchObject({ error: { type: "insufficient_quota", code: "insufficient_quota" } });
    expect([failure.retryAfterSeconds, failure.headers]).toEqual([3600, { "x-should-retry": "false" }]);
  });

  test("that will never fit", () => {
    const { failure } = told({ asked: 200, waitMs: Infinity });
    expect(failure.message).toMatch(
      /^Request too large for the key 'alice' on tokens per min \(TPM\): Limit 100, Requested 200/,
    );
    expect([failure.retryAfterSeconds, failure.headers]).toEqual([undefined, { "x-should-retry": "false" }]);
  });
});
