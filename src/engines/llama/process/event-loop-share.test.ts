import { expect, test } from "vitest";
import { loopRounds, stepsOfWork } from "../../../../test/support/loop-rounds.ts";
import { EventLoopShare, type AsyncSteps } from "./event-loop-share.ts";

type Work = AsyncSteps<string>;

// Each of 60 requests had its own 4 ms of a turn: together they delayed the model's decodes by a quarter of a second at a time.
test("runs share a turn of the event loop, and none waits for the whole of another", async () => {
  const share = new EventLoopShare();
  const noted: string[] = [];
  const all = Promise.all(["a", "b", "c"].map((name) => share.run(stepsOfWork(8, 2, () => noted.push(name)))));
  const seen = await loopRounds(all, noted);
  expect(await all).toEqual(["done", "done", "done"]);
  expect(seen.flat()).toHaveLength(24);
  // A share ends with the step that is at it after 5 ms, and so after three of 2 ms. The first one is had before the round that is looked at.
  for (const [at, round] of seen.entries()) expect(round.length).toBeLessThanOrEqual(at === 0 ? 6 : 3);
  expect(new Set(seen.flat().slice(0, 9)).size).toBe(3);
});

test("short runs of one turn are completed in it", async () => {
  const share = new EventLoopShare();
  const noted: string[] = [];
  const works = Array.from({ length: 50 }, (_, at) => share.run(stepsOfWork(2, 0, () => noted.push(String(at)))));
  const seen = await loopRounds(Promise.all(works), noted);
  // All of them take less than a millisecond; a busy machine may need a second round.
  expect(seen.length).toBeLessThan(10);
  expect(seen.flat()).toHaveLength(100);
});

test("while one run waits for a promise, others continue", async () => {
  const share = new EventLoopShare();
  const told: string[] = [];
  let keep = (): void => {};
  const waits = share.run(
    (function* (): Work {
      yield new Promise<void>((resolve) => (keep = resolve));
      told.push("waited");
      return "late";
    })(),
  );
  expect(await share.run(stepsOfWork(3, 0, () => told.push("step")))).toBe("done");
  keep();
  expect(await waits).toBe("late");
  expect(told).toEqual(["step", "step", "step", "waited"]);
});

test("a rejected promise is thrown into the work, which cleans up", async () => {
  let left = false;
  const work = function* (): Work {
    try {
      yield Promise.reject(new Error("broken"));
    } finally {
      left = true;
    }
    return "done";
  };
  await expect(new EventLoopShare().run(work())).rejects.toThrow("broken");
  expect(left).toBe(true);
});

test("what a step throws ends its run, and not the others", async () => {
  const share = new EventLoopShare();
  const broken = share.run(
    (function* (): Work {
      yield;
      throw new Error("broken");
    })(),
  );
  const other = share.run(stepsOfWork(3, 2, () => {}));
  await expect(broken).rejects.toThrow("broken");
  expect(await other).toBe("done");
});
