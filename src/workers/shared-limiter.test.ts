import fc from "fast-check";
import { expect, test } from "vitest";
import { peerPair } from "../../test/support/peer-pair.ts";
import type { PeerPair } from "../../test/support/peer-pair.ts";
import type { Moment } from "../kv/memory-limiter.ts";
import type { LimitLease, Refusal } from "../kv/limits.ts";
import { MemoryLimiter } from "../kv/memory-limiter.ts";
import { LimiterOfWorkers, SharedLimiter } from "./shared-limiter.ts";

/** Workers that count together, by a clock that only the test moves. */
function workersOf(count: number, clock: () => Moment): { limiters: SharedLimiter[]; pairs: PeerPair[] } {
  const together = new LimiterOfWorkers(new MemoryLimiter(clock));
  const pairs = Array.from({ length: count }, peerPair);
  for (const { primary } of pairs) together.join(primary);
  return { limiters: pairs.map(({ worker }) => new SharedLimiter(worker)), pairs };
}

const limits = fc.record({
  requestsPerMinute: fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined }),
  tokensPerMinute: fc.option(fc.integer({ min: 1, max: 500 }), { nil: undefined }),
  tokensPerDay: fc.option(fc.integer({ min: 1, max: 2000 }), { nil: undefined }),
  concurrency: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
});
const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        take: fc.nat(150),
        reserve: fc.nat(50),
        worker: fc.nat(2),
        name: fc.constantFrom("a", "b"),
      }),
    },
    { weight: 3, arbitrary: fc.record({ end: fc.nat(30), cost: fc.nat(400) }) },
    { weight: 2, arbitrary: fc.record({ wait: fc.nat(40_000) }) },
    { weight: 1, arbitrary: fc.record({ dies: fc.nat(2) }) },
  ),
  { maxLength: 30 },
);

test("workers that share a limiter decide as one limiter does, in any order of requests", async () => {
  await fc.assert(
    fc.asyncProperty(limits, steps, async (bounds, all) => {
      let ms = 1_000_000;
      const clock = (): Moment => ({ ms, unixMs: 1_800_000_000_000 + ms });
      const alone = new MemoryLimiter(clock);
      const together = new LimiterOfWorkers(new MemoryLimiter(clock));
      const workers = [0, 1, 2].map(() => newWorker(together));
      let open: { worker: number; tokens: number; own: LimitLease; shared: LimitLease }[] = [];
      for (const step of all) {
        if ("wait" in step) ms += step.wait;
        else if ("take" in step) {
          const { worker, name, take, reserve } = step;
          const own = await alone.take(name, bounds, take, reserve);
          const shared = await workers[worker]?.limiter.take(name, bounds, take, reserve);
          if (shared === undefined) continue;
          expect(told(shared)).toEqual(told(own));
          if ("end" in own && "end" in shared) open.push({ worker, tokens: take, own, shared });
        } else if ("end" in step) {
          const [ended] = open.splice(step.end, 1);
          // Twice: only the first counts.
          for (let time = 0; time < 2; time++) {
            ended?.own.end(step.cost);
            ended?.shared.end(step.cost);
          }
        } else {
          // What a worker has not sent yet is lost with it: the model knows only what arrived.
          await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
          workers[step.dies]?.pair.end();
          for (const { worker, tokens, own } of open) if (worker === step.dies) own.end(tokens);
          open = open.filter(({ worker }) => worker !== step.dies);
          workers[step.dies] = newWorker(together);
        }
      }
    }),
    { numRuns: 200 },
  );
});

function newWorker(together: LimiterOfWorkers): { pair: PeerPair; limiter: SharedLimiter } {
  const pair = peerPair();
  together.join(pair.primary);
  return { pair, limiter: new SharedLimiter(pair.worker) };
}

function told(taken: LimitLease | Refusal): unknown {
  return "bound" in taken ? taken : taken.levels;
}

test("a client that has its answer can send its next request to any worker, even if the end is reported late", async () => {
  const moment = { ms: 0, unixMs: 0 };
  const together = new LimiterOfWorkers(new MemoryLimiter(() => moment));
  const first = newWorker(together);
  const second = newWorker(together);
  const lease = await first.limiter.take("a", { concurrency: 1 }, 0);
  expect(lease).toHaveProperty("end");
  // The end overtakes nothing: the other worker's question is under way before it is told.
  const asked = second.limiter.take("a", { concurrency: 1 }, 0);
  if ("end" in lease) lease.end(0);
  expect(await asked).toHaveProperty("end");
  expect(await first.limiter.take("a", { concurrency: 1 }, 0)).toMatchObject({ bound: "concurrency", used: 1 });
});

test("a worker without a primary process counts by itself, without waiting", async () => {
  const { limiters, pairs } = workersOf(1, () => ({ ms: 0, unixMs: 0 }));
  for (const pair of pairs) pair.end();
  const decisions = [];
  for (let request = 0; request < 3; request++)
    decisions.push("end" in ((await limiters[0]?.take("a", { requestsPerMinute: 2 }, 0)) ?? {}));
  expect(decisions).toEqual([true, true, false]);
});
