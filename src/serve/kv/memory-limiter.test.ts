import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Moment } from "./memory-limiter.ts";
import type { LimitLease, UsageLimits, Refusal } from "./limits.ts";
import { Account, MemoryLimiter } from "./memory-limiter.ts";

const dayMs = 86_400_000;

/** A limiter whose clocks a test moves. */
function limiterAt(start: Moment): { limiter: MemoryLimiter; pass: (ms: number) => void; jump: (ms: number) => void } {
  let now = start;
  return {
    limiter: new MemoryLimiter(() => now),
    pass: (ms) => (now = { ms: now.ms + ms, unixMs: now.unixMs + ms }),
    jump: (ms) => (now = { ...now, unixMs: now.unixMs + ms }),
  };
}

const noon: Moment = { ms: 5000, unixMs: 20_000 * dayMs + dayMs / 2 };

function leaseOf(taken: LimitLease | Refusal): LimitLease {
  if ("bound" in taken) throw new Error(`refused: ${taken.bound}`);
  return taken;
}

const boundOf = (taken: LimitLease | Refusal): string | undefined => ("bound" in taken ? taken.bound : undefined);

describe("a minute's rates", () => {
  test("a whole limit immediately, then as fast as it drains", async () => {
    const { limiter, pass } = limiterAt(noon);
    const limits: UsageLimits = { requestsPerMinute: 3 };
    for (const remaining of [2, 1, 0]) {
      const { levels } = leaseOf(await limiter.take("a", limits, 10));
      expect(levels).toEqual({ requests: { limit: 3, remaining, resetMs: (3 - remaining) * 20_000 } });
    }
    expect(await limiter.take("a", limits, 10)).toMatchObject({
      bound: "requests",
      limit: 3,
      used: 3,
      asked: 1,
      waitMs: 20_000,
    });
    expect(boundOf(await limiter.take("b", limits, 10))).toBeUndefined();
    pass(19_999);
    expect(await limiter.take("a", limits, 10)).toMatchObject({ waitMs: 1 });
    pass(1);
    expect(boundOf(await limiter.take("a", limits, 10))).toBeUndefined();
  });

  test("tokens are taken by estimate and corrected by what they were", async () => {
    const { limiter } = limiterAt(noon);
    const limits: UsageLimits = { tokensPerMinute: 100 };
    const first = leaseOf(await limiter.take("a", limits, 60));
    expect(boundOf(await limiter.take("a", limits, 60))).toBe("tokens");
    first.end(30);
    const second = leaseOf(await limiter.take("a", limits, 60));
    expect(second.levels.tokens).toMatchObject({ remaining: 10 });
    second.end(500);
    // What a request cost beyond its estimate must drain, too.
    expect(await limiter.take("a", limits, 10)).toMatchObject({ bound: "tokens", used: 530, waitMs: 264_000 });
    second.end(0);
    expect(await limiter.take("a", limits, 10)).toMatchObject({ used: 530 });
  });

  test("what is reserved counts until the request ends, in each limit of tokens, and is given back exactly", async () => {
    const { limiter } = limiterAt(noon);
    const limits: UsageLimits = { tokensPerMinute: 100, tokensPerDay: 150 };
    const first = leaseOf(await limiter.take("a", limits, 10, 60));
    expect(first.levels.tokens).toMatchObject({ remaining: 30 });
    expect(await limiter.take("a", limits, 10, 60)).toMatchObject({ bound: "tokens", used: 70, asked: 70 });
    first.end(25);
    const second = leaseOf(await limiter.take("a", limits, 10, 60));
    expect(second.levels.tokens).toMatchObject({ remaining: 5 });
    second.end(70);
    expect(await limiter.take("a", { tokensPerDay: 150 }, 10, 60)).toMatchObject({ bound: "day", used: 95 });
  });

  test("a request that is larger than the limit never fits", async () => {
    const { limiter } = limiterAt(noon);
    expect(await limiter.take("a", { tokensPerMinute: 100 }, 101)).toMatchObject({ bound: "tokens", waitMs: Infinity });
  });

  test("a request without tokens is bound by those of requests alone", async () => {
    const { limiter } = limiterAt(noon);
    const limits: UsageLimits = { tokensPerMinute: 10, tokensPerDay: 10, requestsPerMinute: 2 };
    leaseOf(await limiter.take("a", limits, 10)).end(50);
    expect(boundOf(await limiter.take("a", limits, 1))).toBe("day");
    leaseOf(await limiter.take("a", limits, 0));
    expect(boundOf(await limiter.take("a", limits, 0))).toBe("requests");
  });
});

describe("the budget of a day", () => {
  const limits: UsageLimits = { tokensPerDay: 100 };

  test("is there again on the next day in UTC", async () => {
    const { limiter, pass } = limiterAt(noon);
    leaseOf(await limiter.take("a", limits, 100));
    expect(await limiter.take("a", limits, 1)).toMatchObject({ bound: "day", used: 100, waitMs: dayMs / 2 });
    pass(dayMs / 2 - 1);
    expect(boundOf(await limiter.take("a", limits, 1))).toBe("day");
    pass(1);
    expect(boundOf(await limiter.take("a", limits, 100))).toBeUndefined();
  });

  test("what a request turns out to cost belongs to the day on which it began", async () => {
    const { limiter, pass } = limiterAt(noon);
    const lease = leaseOf(await limiter.take("a", limits, 10));
    pass(dayMs / 2);
    lease.end(1000);
    expect(boundOf(await limiter.take("a", limits, 100))).toBeUndefined();
  });

  test.each([-400 * dayMs, 400 * dayMs])(
    "a clock that jumps by %d ms and back neither frees nor locks",
    async (jumped) => {
      const { limiter, pass, jump } = limiterAt(noon);
      leaseOf(await limiter.take("a", { ...limits, requestsPerMinute: 2 }, 100));
      jump(jumped);
      // By that clock it is another day, whose budget is whole; the minute's rates do not ask that clock.
      expect(boundOf(await limiter.take("a", { ...limits, requestsPerMinute: 2 }, 60))).toBeUndefined();
      expect(boundOf(await limiter.take("a", { requestsPerMinute: 2 }, 0))).toBe("requests");
      jump(-jumped);
      expect(boundOf(await limiter.take("a", limits, 1))).toBe("day");
      pass(dayMs / 2);
      expect(boundOf(await limiter.take("a", limits, 100))).toBeUndefined();
    },
  );
});

type Step =
  | { readonly pass: number }
  | { readonly take: number; readonly reserve: number }
  | { readonly end: number; readonly cost: number };

const steps = fc.array(
  fc.oneof(
    fc.record({ pass: fc.integer({ min: 0, max: 90_000 }) }),
    fc
      .record({ take: fc.integer({ min: 0, max: 100 }), reserve: fc.integer({ min: 0, max: 50 }) })
      // A request that costs nothing reserves nothing.
      .map(({ take, reserve }) => ({ take, reserve: take === 0 ? 0 : reserve })),
    fc.record({ end: fc.nat(20), cost: fc.nat(300) }),
  ) as fc.Arbitrary<Step>,
  { maxLength: 60 },
);
const bound = fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined });
const anyLimits = fc.record({
  requestsPerMinute: bound,
  tokensPerMinute: bound,
  tokensPerDay: bound,
  concurrency: bound,
});

test("in any order, requests exceed a limit only by their cost beyond what was taken", async () => {
  await fc.assert(
    fc.asyncProperty(anyLimits, steps, async (limits, order) => {
      const { limiter, pass } = limiterAt({ ms: 0, unixMs: 0 });
      const open: { lease: LimitLease; taken: number }[] = [];
      const {
        requestsPerMinute = Infinity,
        tokensPerMinute = Infinity,
        tokensPerDay = Infinity,
        concurrency = Infinity,
      } = limits;
      let [requests, tokens, beyond, ms] = [0, 0, 0, 0];
      const check = (): void => {
        const minutes = ms / 60_000;
        const days = 1 + Math.floor(ms / dayMs);
        expect(requests).toBeLessThanOrEqual(requestsPerMinute * (1 + minutes) + 1e-3);
        expect(tokens).toBeLessThanOrEqual(tokensPerMinute * (1 + minutes) + beyond + 1e-3);
        expect(tokens).toBeLessThanOrEqual(tokensPerDay * days + beyond);
        expect(open.length).toBeLessThanOrEqual(concurrency);
      };
      for (const step of order) {
        if ("pass" in step) {
          pass(step.pass);
          ms += step.pass;
        } else if ("take" in step) {
          const taken = await limiter.take("a", limits, step.take, step.reserve);
          if ("bound" in taken) {
            if (taken.bound === "concurrency" || taken.bound === "day" || taken.waitMs === Infinity) continue;
            pass(taken.waitMs);
            ms += taken.waitMs;
            const again = await limiter.take("a", limits, step.take, step.reserve);
            // It said how long to wait, and nobody came between.
            expect(["concurrency", undefined]).toContain(boundOf(again));
            if ("bound" in again) continue;
            open.push({ lease: again, taken: step.take + step.reserve });
          } else open.push({ lease: taken, taken: step.take + step.reserve });
          requests++;
          tokens += step.take + step.reserve;
        } else {
          const [ended] = open.splice(step.end, 1);
          if (!ended) continue;
          ended.lease.end(step.cost);
          tokens += step.cost - ended.taken;
          beyond += Math.max(0, step.cost - ended.taken);
        }
        check();
      }
    }),
    { numRuns: 300 },
  );
});

describe("names that have used nothing", () => {
  const usage = { model: "m", promptTokens: 1, cachedTokens: 0, completionTokens: 1, cost: 0 };
  test.each([
    ["forgotten: after a request that failed", true, (one: Account) => one.end(one.begin(9, 5, noon), -9, undefined)],
    ["kept: after a request that was answered", false, (one: Account) => one.end(one.begin(9, 0, noon), 0, usage)],
    ["kept: while a request is open", false, (one: Account) => void one.begin(9, 0, noon)],
  ])("%s", (_, isForgotten, use) => {
    const account = new Account();
    account.use({}, noon);
    use(account);
    expect(account.isUnused(noon.ms)).toBe(false);
    expect(account.isUnused(noon.ms + 120_000)).toBe(isForgotten);
  });

  test("names without end do not fill the memory, and limits that are in use stay", async () => {
    const { limiter, pass } = limiterAt(noon);
    leaseOf(await limiter.take("kept", { concurrency: 1 }, 1));
    for (let at = 0; at < 30_000; at++) {
      leaseOf(await limiter.take(`name ${at}`, {}, 1)).end(0);
      pass(100);
    }
    expect(limiter.size).toBeLessThan(10_000);
    expect(boundOf(await limiter.take("kept", { concurrency: 1 }, 1))).toBe("concurrency");
  });
});
