import { expect, test } from "vitest";
import type { GenerationFailure } from "../../wire/core/events.ts";
import { type Allowance, type Decision, decide, isServersFault, type Outcome, RetryBudget } from "./next-attempt.ts";
import type { FailedEnd } from "./transport-failure.ts";

const half = (): number => 0.5;

function failedWith(failure: Partial<GenerationFailure>, kind: FailedEnd["kind"] = "upstream-error"): FailedEnd {
  return { kind, failure: { kind: "unavailable", message: "No.", status: 503, ...failure } };
}

const error = (code: string): Error => Object.assign(new Error(code), { code });

const refusal = failedWith({ kind: "invalid-request", status: 400 });
const allowances: readonly Allowance[] = [1, 2, 3].flatMap((number) =>
  [true, false].flatMap((hasBudget) => [0, 2].map((retries) => ({ number, retries, hasBudget }))),
);

// These do not depend on what was tried.
test.each<[Outcome, Decision]>([
  [{ kind: "abandoned" }, { kind: "give" }],
  [{ kind: "answered" }, { kind: "give" }],
  [{ kind: "unchanged" }, { kind: "give" }],
  [{ kind: "replaced" }, { kind: "give" }],
  [
    { kind: "taught", end: refusal },
    { kind: "adapt", end: refusal },
  ],
  [
    { kind: "limited", end: refusal, limit: 4096 },
    { kind: "limit", end: refusal, limit: 4096 },
  ],
  [
    { kind: "limited", end: refusal, limit: null },
    { kind: "limit", end: refusal, limit: null },
  ],
])("%j is followed by %j, whatever was tried", (outcome, decision) => {
  for (const allowance of allowances) expect(decide(outcome, allowance, half)).toEqual(decision);
});

/** The wait before a retry, in milliseconds; null: none. */
type Wait = number | null;

// Each failure: the wait if another target may be tried, and before the first and the second retry of the only target.
test.each<[what: string, end: FailedEnd, other: Wait, first: Wait, second: Wait]>([
  ["503", failedWith({}), 0, 200, 400],
  ["500", failedWith({ status: 500 }), 0, 200, 400],
  ["501", failedWith({ status: 501 }), null, null, null],
  ["408", failedWith({ status: 408 }), 0, 200, 400],
  ["429", failedWith({ status: 429 }), 0, null, null],
  ["429 with Retry-After", failedWith({ status: 429, retryAfterSeconds: 0.25 }), 0, 250, 250],
  ["Retry-After: 0", failedWith({ retryAfterSeconds: 0 }), 0, 0, 0],
  ["Retry-After: 1", failedWith({ retryAfterSeconds: 1 }), 0, 1000, 1000],
  ["a Retry-After just above the maximum", failedWith({ retryAfterSeconds: 1.0005 }), 0, null, null],
  ["Retry-After: 60", failedWith({ retryAfterSeconds: 60 }), 0, null, null],
  ["x-should-retry: false", failedWith({ headers: { "x-should-retry": "false" } }), null, null, null],
  ["x-should-retry: true", failedWith({ headers: { "x-should-retry": "true" } }), 0, 200, 400],
  ["400", refusal, null, null, null],
  ["401", failedWith({ status: 401 }), null, null, null],
  ["404", failedWith({ status: 404 }), null, null, null],
  ["silence", failedWith({ status: 504 }, "idle-timeout"), 0, null, null],
  ["a refused connection", failedWith({ cause: error("ECONNREFUSED") }), 0, 200, 400],
  ["a lost connection", failedWith({ status: 502, cause: error("ECONNRESET") }), 0, 200, 400],
  ["a time-out of the connection", failedWith({ status: 504, cause: error("ETIMEDOUT") }), 0, null, null],
  ["an untrusted certificate", failedWith({ status: 502, cause: error("CERT_HAS_EXPIRED") }), 0, null, null],
  ["no TLS", failedWith({ status: 502, cause: error("EPROTO") }), 0, null, null],
  ["too many open files", failedWith({ cause: error("EMFILE") }), 0, 200, 400],
])("what follows from a failure: %s", (_, end, other, first, second) => {
  const decided = (allowance: Partial<Allowance>, fields: { tookMs?: number; hasOther?: boolean } = {}): Decision =>
    decide(
      { kind: "failed", end, tookMs: 10, hasOther: false, ...fields },
      { number: 1, retries: 2, hasBudget: true, ...allowance },
      half,
    );
  const after = (waitMs: Wait): Decision => (waitMs === null ? { kind: "give" } : { kind: "retry", end, waitMs });
  expect(decided({}, { hasOther: true })).toEqual(after(other));
  expect(decided({ number: 2 }, { hasOther: true })).toEqual(after(other));
  expect(decided({})).toEqual(after(first));
  expect(decided({ number: 2 })).toEqual(after(second));
  // After a long attempt, only another target is tried.
  expect(decided({}, { tookMs: 5000 })).toEqual(after(first));
  expect(decided({}, { tookMs: 5001 })).toEqual({ kind: "give" });
  expect(decided({}, { tookMs: 5001, hasOther: true })).toEqual(after(other));
  // Neither retries nor budget are left.
  for (const hasOther of [true, false])
    for (const used of [{ number: 3 }, { retries: 0 }, { hasBudget: false }])
      expect(decided(used, { hasOther })).toEqual({ kind: "give" });
});

test("a wait without Retry-After is a random part of a doubling maximum, and none is longer than a second", () => {
  const outcome: Outcome = { kind: "failed", end: failedWith({}), tookMs: 0, hasOther: false };
  const waits = (random: number): (number | null)[] =>
    [1, 2, 3].map((number) => {
      const decision = decide(outcome, { number, retries: 3, hasBudget: true }, () => random);
      return decision.kind === "retry" ? decision.waitMs : null;
    });
  expect(waits(0)).toEqual([0, 0, 0]);
  expect(waits(0.3)).toEqual([120, 240, 480]);
  expect(waits(0.9)).toEqual([360, 720, null]);
});

test.each<[Partial<GenerationFailure>, boolean]>([
  [{ status: 400 }, false],
  [{ status: 429 }, false],
  [{ status: 499 }, false],
  [{ status: 500 }, true],
  [{ status: 501 }, false],
  [{ status: 502, cause: error("ECONNRESET") }, true],
  [{ status: 503, cause: error("ECONNREFUSED") }, true],
  [{ status: 503, cause: error("EMFILE") }, false],
  [{ status: 504 }, true],
])("whether the failure %j counts against its server: %s", (failure, isFault) => {
  expect(isServersFault(failedWith(failure).failure)).toBe(isFault);
});

test("a budget allows a burst of ten retries, and then one for every five requests", () => {
  const budget = new RetryBudget();
  const spend = (): number => {
    let spent = 0;
    for (; budget.isLeft; spent++) budget.withdraw();
    return spent;
  };
  expect(spend()).toBe(10);
  for (let request = 0; request < 4; request++) budget.deposit();
  expect(budget.isLeft).toBe(false);
  for (let request = 0; request < 7; request++) budget.deposit();
  expect(spend()).toBe(2);
  for (let request = 0; request < 1000; request++) budget.deposit();
  expect(spend()).toBe(10);
});
