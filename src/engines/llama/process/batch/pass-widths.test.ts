import fc from "fast-check";
import { expect, test } from "vitest";
import { PassWidths } from "./pass-widths.ts";

/** How long a pass of so many answers takes. */
type Machine = (answers: number) => number;

/** Measured: Q8_0, one thread of a server's processor. */
const slowBatches: Machine = (answers) => (answers === 1 ? 7 : answers < 8 ? 25 + 5 * answers : 48);
const cheapBatches: Machine = (answers) => 20 + answers;

/** So many tokens of each answer; how long that took, and how much of it was in passes of single answers. */
function run(
  machine: Machine,
  answers: number,
  tokens = 200,
  widths = new PassWidths(),
): { ms: number; alone: number } {
  let ms = 0;
  let alone = 0;
  for (let drawn = 0; drawn < tokens * answers;) {
    const count = widths.oneByOne(answers) ? 1 : answers;
    const took = machine(count);
    widths.observe(count, took);
    ms += took;
    drawn += count;
    if (count === 1) alone += 1 / (tokens * answers);
  }
  return { ms, alone };
}

test("answers are computed one by one where llama.cpp takes longer for a batch of them", () => {
  for (const answers of [2, 4, 5]) expect(run(slowBatches, answers).alone, `${answers}`).toBeGreaterThan(0.95);
  expect(run(slowBatches, 8).alone).toBeLessThan(0.05);
});

test("answers are computed together where that is faster, which is measured by a few passes alone", () => {
  expect(run(cheapBatches, 2).alone).toBeLessThan(0.05);
  expect(run(cheapBatches, 16).alone).toBeLessThan(0.05);
});

test("a single answer is alone anyway", () => {
  expect(run(cheapBatches, 1).alone).toBeCloseTo(1);
});

test("when the machine changes, the other way is found", () => {
  const widths = new PassWidths();
  expect(run(slowBatches, 4, 500, widths).alone).toBeGreaterThan(0.9);
  run(cheapBatches, 4, 2000, widths);
  expect(run(cheapBatches, 4, 500, widths).alone).toBeLessThan(0.05);
});

// The fastest of the last passes counts: an average took two slow ones, of another program's doing, for what a pass takes.
test("a few passes that something else held up change nothing", () => {
  const widths = new PassWidths();
  run(slowBatches, 4, 100, widths);
  for (let i = 0; i < 3; i++) widths.observe(1, 40);
  expect(widths.oneByOne(4)).toBe(true);
});

test("on every machine it takes at most 5 % longer than the better of both ways, and what was measured", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 16 }),
      fc.double({ min: 1, max: 100, noNaN: true }),
      fc.double({ min: 1, max: 400, noNaN: true }),
      (answers, alone, together) => {
        const tokens = 2000;
        const best = tokens * Math.min(alone * answers, together);
        const measuring = 8 * (together + alone) * (1 + tokens / 256);
        expect(run((count) => (count === 1 ? alone : together), answers, tokens).ms).toBeLessThan(
          best * 1.06 + measuring,
        );
      },
    ),
  );
});
