import { expect, test } from "vitest";
import { loopRounds, stepsOfWork } from "../../../test/support/loop-rounds.ts";
import { inTurns } from "./turns.ts";

test("work is done in turns, and its value comes back", async () => {
  const noted: string[] = [];
  const value = inTurns(stepsOfWork(10, 2, () => noted.push("a")));
  // The first step of 2 ms is taken immediately.
  expect(noted.splice(0)).toHaveLength(1);
  const seen = await loopRounds(value, noted);
  expect(await value).toBe("done");
  expect(seen.flat()).toHaveLength(9);
  // A turn ends with the step that is at it after 5 ms, and so after three of 2 ms.
  for (const round of seen) expect(round.length).toBeLessThanOrEqual(3);
});

// Timers that are due together run together: ten bodies at once held the loop ten times as long as one.
test("several works take one turn each, and no two in one round", async () => {
  const noted: string[] = [];
  const all = Promise.all(["a", "b", "c"].map((name) => inTurns(stepsOfWork(6, 2, () => noted.push(name)))));
  expect(noted.splice(0)).toEqual(["a", "b", "c"]);
  const seen = await loopRounds(all, noted);
  expect(seen.flat()).toHaveLength(15);
  for (const round of seen) expect(new Set(round).size).toBe(1);
  expect(seen.slice(0, 3).map(([name]) => name)).toEqual(["a", "b", "c"]);
});

test("what a step throws ends its work, and not the others'", async () => {
  const broken = inTurns(
    (function* (): Generator<undefined, void, undefined> {
      yield;
      throw new Error("broken");
    })(),
  );
  const other = inTurns(stepsOfWork(3, 2, () => {}));
  await expect(broken).rejects.toThrow("broken");
  expect(await other).toBe("done");
});

test("short work runs immediately; long work runs in turns", async () => {
  const noted: string[] = [];
  const brief = inTurns(stepsOfWork(3, 0, () => noted.push("brief")));
  expect(noted).toHaveLength(3);
  expect(await brief).toBe("done");
  noted.length = 0;
  const long = inTurns(stepsOfWork(12, 1, () => noted.push("long")));
  expect(noted.length).toBeLessThanOrEqual(3);
  const seen = await loopRounds(long, noted);
  expect(await long).toBe("done");
  expect(seen.flat()).toHaveLength(12);
  // The first part is done before the rounds begin, and a turn ends with the step that is at it after 5 ms.
  expect(seen.length).toBeGreaterThanOrEqual(2);
  for (const round of seen) expect(round.length).toBeLessThanOrEqual(8);
});
