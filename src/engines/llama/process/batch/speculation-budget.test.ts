import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maxDrafted, SpeculationBudget } from "./speculation-budget.ts";

/** How long a pass takes, by its answers and drafted tokens. */
type Machine = (answers: number, drafted: number) => number;

/** Memory is what takes time: a few tokens more cost next to nothing. */
const cheap: Machine = (answers, drafted) => 100 + answers + drafted;
/** Each token costs as much as the first. */
const dear: Machine = (answers, drafted) => 10 * (answers + drafted);
/** Two tokens cost four times as much as one, sixteen eight times as much (measured: Q8_0, one thread of a server's processor). */
const stepped: Machine = (answers, drafted) => (answers + drafted === 1 ? 8 : 28 + 2.3 * (answers + drafted));

const sure = Array.from({ length: maxDrafted }, (_, i) => 0.98 ** i);
const unsure = Array.from({ length: maxDrafted }, (_, i) => 0.4 ** (i + 1));

/** Runs so many passes; how many tokens came of a second, of those that may be expected, and what was drafted in the last pass. */
function run(
  machine: Machine,
  chances: readonly (readonly number[])[],
  answers: number,
  passes = 600,
): { readonly rate: number; readonly drafted: readonly number[]; readonly budget: SpeculationBudget } {
  const budget = new SpeculationBudget({ always: false });
  let ms = 0;
  let tokens = 0;
  let last: readonly number[] = [];
  for (let pass = 0; pass < passes; pass++) {
    last = budget.plan(chances, { answers, most: maxDrafted });
    const drafted = last.reduce((sum, length) => sum + length, 0);
    const took = machine(answers, drafted);
    budget.observe(answers, drafted, took);
    ms += took;
    tokens += answers;
    for (const [i, length] of last.entries()) for (const chance of chances[i]?.slice(0, length) ?? []) tokens += chance;
  }
  return { rate: (tokens * 1000) / ms, drafted: last, budget };
}

const plainRate = (machine: Machine, answers: number): number => (answers * 1000) / machine(answers, 0);

test("drafts that cost little are taken", () => {
  expect(run(cheap, [sure], 1).rate).toBeGreaterThan(10 * plainRate(cheap, 1));
  expect(run(cheap, [unsure], 1).rate).toBeGreaterThan(1.4 * plainRate(cheap, 1));
});

test("drafts that cost what they bring are not", () => {
  for (const chances of [sure, unsure]) {
    const { rate, drafted } = run(dear, [chances], 1);
    expect(drafted).toEqual([0]);
    expect(rate).toBeGreaterThan(0.95 * plainRate(dear, 1));
  }
});

test("where few drafted tokens cost more than they bring, many are taken, or none", () => {
  expect(run(stepped, [sure], 1).rate).toBeGreaterThan(1.8 * plainRate(stepped, 1));
  const { rate, drafted } = run(stepped, [unsure], 1);
  expect(drafted).toEqual([0]);
  expect(rate).toBeGreaterThan(0.97 * plainRate(stepped, 1));
});

test("several drafts share what pays, the likelier tokens first", () => {
  const { drafted } = run(cheap, [sure, unsure, []], 3);
  expect(drafted[0]).toBeGreaterThan(drafted[1] ?? 0);
  expect(drafted[2]).toBe(0);
});

// Answers beside one that repeats would have waited for its drafts.
test("who gains nothing by a pass is hardly slowed down by it", () => {
  const machine: Machine = (answers, drafted) => 20 * answers + 8 * drafted;
  const { drafted } = run(machine, [sure], 2);
  expect(machine(2, drafted[0] ?? 0)).toBeLessThan(machine(2, 0) / 0.89);
});

test("a machine that becomes slower for all sizes is not taken for drafts that became dear", () => {
  const { budget } = run(cheap, [sure], 1);
  for (let pass = 0; pass < 20; pass++) budget.observe(1, 0, 5 * cheap(1, 0));
  expect(budget.plan([sure], { answers: 1, most: maxDrafted })[0]).toBeGreaterThan(10);
});

test("the first pass of a size, which may load what it computes with, says nothing", () => {
  const seen = new Set<number>();
  const machine: Machine = (answers, drafted) => {
    if (seen.has(drafted)) return cheap(answers, drafted);
    seen.add(drafted);
    return 50 * cheap(answers, drafted);
  };
  expect(run(machine, [sure], 1).drafted[0]).toBeGreaterThan(10);
});

test("what was too dear long ago is tried again", () => {
  const { budget } = run(dear, [sure], 1);
  let drafts = 0;
  for (let pass = 0; pass < 20_000; pass++) {
    const [drafted = 0] = budget.plan([sure], { answers: 1, most: maxDrafted });
    if (drafted > 0) drafts++;
    budget.observe(1, drafted, (drafted === 0 ? 1 : 0.5) * dear(1, drafted));
  }
  expect(drafts).toBeGreaterThan(0);
});

describe("for every machine and all drafts", () => {
  const chances = fc
    .array(fc.double({ min: 0.05, max: 1, noNaN: true }), { maxLength: 40 })
    .map((rates) => rates.map((_, i) => rates.slice(0, i + 1).reduce((product, rate) => product * rate, 1)));

  test("no more is taken than there is and may be, and little is lost", () => {
    const machines = fc
      .tuple(fc.array(fc.double({ min: 0, max: 3, noNaN: true }), { minLength: 40, maxLength: 40 }))
      .map(([steps]): Machine => {
        const sums = steps.map((_, i) => steps.slice(0, i).reduce((sum, step) => sum + step, 10));
        return (answers, drafted) => sums[Math.min(39, answers + drafted)] ?? 0;
      });
    fc.assert(
      fc.property(
        machines,
        fc.array(chances, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 0, max: 3 }),
        fc.integer({ min: 0, max: maxDrafted }),
        (machine, drafts, others, most) => {
          const answers = drafts.length + others;
          const { rate } = run(machine, drafts, answers, 1000);
          expect(rate).toBeGreaterThan(0.95 * plainRate(machine, answers));
          for (const always of [true, false]) {
            const budget = new SpeculationBudget({ always });
            budget.observe(answers, 0, 10);
            budget.observe(answers, 0, 10);
            const lengths = budget.plan(drafts, { answers, most });
            expect(lengths.reduce((sum, length) => sum + length, 0)).toBeLessThanOrEqual(most);
            for (const [i, length] of lengths.entries()) expect(length).toBeLessThanOrEqual(drafts[i]?.length ?? 0);
          }
        },
      ),
      { numRuns: 100 },
    );
  });
});

test("drafts for all must beat answers one by one, where those are faster than all together", () => {
  const budget = new SpeculationBudget({ always: false });
  const four = [sure, sure, sure, sure];
  for (let i = 0; i < 10; i++) {
    budget.observe(4, 0, 44);
    for (const drafted of [1, 2, 3, 5, 7, 11, 15, 23, 31]) budget.observe(4, drafted, 44 + 3 * drafted);
  }
  const tokens = (otherwise?: number): number =>
    budget
      .plan(four, { answers: 4, most: maxDrafted, ...(otherwise !== undefined && { otherwise }) })
      .reduce((sum, length) => sum + length, 0);
  budget.observe(4, 0, 44);
  expect(tokens()).toBeGreaterThan(0);
  expect(tokens(28)).toBeGreaterThan(0);
  expect(tokens(12)).toBe(0);
});
