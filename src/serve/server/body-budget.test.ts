import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { BodyBudget, joined } from "./body-budget.ts";
import type { BodyLease } from "./body-budget.ts";

const mib = 1024 * 1024;

/** A body of known length, and whether it may be read now. */
function body(
  budget: BodyBudget,
  bytes: number,
): { lease: BodyLease; admitted: () => boolean; refused: () => unknown } {
  const lease = budget.lease();
  let [isAdmitted, error]: [boolean, unknown] = [false, undefined];
  const wait = lease.begin(bytes);
  if (!wait) isAdmitted = true;
  else
    wait.then(
      () => (isAdmitted = true),
      (cause: unknown) => (error = cause),
    );
  return { lease, admitted: () => isAdmitted, refused: () => error };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

// 40 requests of 30 MB at once ended a server with a heap of 1 GB: each body was limited, and their sum was not.
describe("the memory for request bodies", () => {
  test("a body that exceeds the budget waits until another one is answered", async () => {
    const budget = new BodyBudget(100 * mib);
    const bodies = Array.from({ length: 4 }, () => body(budget, 30 * mib));
    expect(bodies.map(({ admitted }) => admitted())).toEqual([true, true, false, false]);
    bodies[0]?.lease.release();
    await settled();
    expect(bodies.map(({ admitted }) => admitted())).toEqual([true, true, true, false]);
    for (const { lease } of bodies) lease.release();
    expect(budget.used).toBe(0);
  });

  // It reserved memory that nothing released.
  test("a released lease takes no more", () => {
    const budget = new BodyBudget(mib);
    const lease = budget.lease();
    lease.release();
    expect([lease.begin(Number.NaN), lease.begin(mib), lease.arrived(mib)]).toEqual([undefined, undefined, undefined]);
    lease.release();
    expect(budget.used).toBe(0);
  });

  test("smaller bodies pass larger ones that wait", () => {
    const budget = new BodyBudget(100 * mib);
    const large = Array.from({ length: 20 }, () => body(budget, 30 * mib));
    const small = Array.from({ length: 50 }, () => body(budget, 100_000));
    expect(large.filter(({ admitted }) => admitted())).toHaveLength(2);
    expect(small.every(({ admitted }) => admitted())).toBe(true);
  });

  test("a body that is larger than the budget is served when the budget is not in use", () => {
    const budget = new BodyBudget(10 * mib);
    const [first, second] = [body(budget, 30 * mib), body(budget, 30 * mib)];
    expect([first.admitted(), second.admitted()]).toEqual([true, false]);
    expect(body(budget, 1000).admitted()).toBe(true);
  });

  test("a body of unknown length reserves more as it comes, and gives back what it did not need", () => {
    const budget = new BodyBudget(100 * mib);
    const lease = budget.lease();
    expect(lease.begin(Number.NaN)).toBeUndefined();
    for (let at = 0; at < 300; at++) expect(lease.arrived(1000)).toBeUndefined();
    expect(budget.used).toBeGreaterThan(300_000);
    lease.complete(300_000);
    expect(budget.used).toBe(300_000);
    lease.release();
    lease.release();
    expect(budget.used).toBe(0);
  });

  test("a body that waits too long is refused with 503 and a time to retry", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const budget = new BodyBudget(10 * mib);
    const first = body(budget, 6 * mib);
    const refused = [budget.lease(), budget.lease(), budget.lease()];
    // Each is released as soon as it is refused, as a request is: that must not take another one's turn.
    const outcomes = refused.map((lease) =>
      lease.begin(6 * mib)?.catch((error: unknown) => {
        lease.release();
        throw error;
      }),
    );
    for (const outcome of outcomes) outcome?.catch(() => {});
    await vi.advanceTimersByTimeAsync(10_000);
    for (const outcome of outcomes) {
      await expect(outcome).rejects.toMatchObject({
        failure: { status: 503, code: "request_bodies_full", retryAfterSeconds: 5 },
      });
    }
    first.lease.release();
    expect(budget.used).toBe(0);
  });

  test("what waits and is released takes nothing, though its turn comes", async () => {
    const budget = new BodyBudget(10 * mib);
    const [first, second] = [body(budget, 6 * mib), body(budget, 6 * mib)];
    second.lease.release();
    first.lease.release();
    await settled();
    expect(second.admitted()).toBe(false);
    expect(budget.used).toBe(0);
  });

  test("a body that does not arrive is ended while others wait, and only then", () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "clearTimeout", "performance"] });
    try {
      const budget = new BodyBudget(10 * mib);
      const { lease } = body(budget, 6 * mib);
      lease.onTooSlow = vi.fn();
      vi.advanceTimersByTime(60_000);
      expect(lease.onTooSlow).not.toHaveBeenCalled();
      const other = body(budget, 6 * mib);
      vi.advanceTimersByTime(1000);
      expect(lease.onTooSlow).toHaveBeenCalled();
      lease.release();
      expect(other.admitted() || budget.used > 0).toBe(true);
      other.lease.release();
    } finally {
      vi.useRealTimers();
    }
  });

  test("for every order of bodies: the sum stays within the budget, all is given back, and the smallest that waits is next", async () => {
    const act = fc.oneof(fc.record({ bytes: fc.integer({ min: 0, max: 2000 }) }), fc.record({ end: fc.nat(40) }));
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 60 }), async (acts) => {
        const budget = new BodyBudget(4000);
        const open: { bytes: number; of: ReturnType<typeof body> }[] = [];
        for (const one of acts) {
          if ("bytes" in one) open.push({ bytes: one.bytes, of: body(budget, one.bytes) });
          else if (open.length > 0) open.splice(one.end % open.length, 1)[0]?.of.lease.release();
          await settled();
          expect(budget.used).toBeLessThanOrEqual(4000);
          expect(budget.used).toBe(open.reduce((sum, { of }) => sum + of.lease.size, 0));
          const waiting = open.filter(({ of }) => !of.admitted());
          const smallest = Math.min(...waiting.map(({ bytes }) => bytes));
          // The smallest one waits because it does not fit.
          if (waiting.length > 0) expect(budget.used + smallest).toBeGreaterThan(4000 - Math.min(4 * smallest, 1000));
        }
        for (const { of } of open) of.lease.release();
        expect(budget.used).toBe(0);
      }),
    );
  });
});

// The chunks of 30 MB were copied at once, which held up other requests for 25 ms.
test("the chunks of a body are joined in steps", () => {
  const chunks = [new Uint8Array([1, 2]), new Uint8Array([3]), new Uint8Array([4, 5])];
  const steps = joined(chunks, 5);
  for (const _ of chunks) expect(steps.next().done).toBe(false);
  expect(steps.next()).toEqual({ done: true, value: new Uint8Array([1, 2, 3, 4, 5]) });
  expect(joined([new Uint8Array([7])], 1).next()).toEqual({ done: true, value: new Uint8Array([7]) });
});
