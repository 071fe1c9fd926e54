import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DecodeCosts, maxDraftTokens } from "./decode-costs.ts";
import { draftDepth, planDrafts } from "./draft-plan.ts";

/** Records a decode without prompt tokens. */
function observe(costs: DecodeCosts, answers: number, draftTokens: number, ms: number): void {
  costs.observe({ answers, round: answers, promptTokens: 0, draftTokens }, ms);
}

/** A draft that is nearly certain. */
const sure = Array.from({ length: maxDraftTokens }, (_, i) => 0.98 ** i);

describe("drafts", () => {
  /** The duration of a decode, by its answers and draft tokens. */
  type Machine = (answers: number, draftTokens: number) => number;

  /** Limited by memory bandwidth: a few tokens more cost next to nothing. */
  const cheap: Machine = (answers, draftTokens) => 100 + answers + draftTokens;
  /** Each token costs as much as the first. */
  const dear: Machine = (answers, draftTokens) => 10 * (answers + draftTokens);
  /** Two tokens cost four times as much as one, sixteen eight times as much (measured: Q8_0, one thread of a server's processor). */
  const stepped: Machine = (answers, draftTokens) =>
    answers + draftTokens === 1 ? 8 : 28 + 2.3 * (answers + draftTokens);

  const unsure = Array.from({ length: maxDraftTokens }, (_, i) => 0.4 ** (i + 1));

  const plan = (
    costs: DecodeCosts,
    probabilities: readonly (readonly number[])[],
    answers: number,
  ): readonly number[] => planDrafts(costs, probabilities, { answers, maxTokens: maxDraftTokens, always: false });

  const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

  /** Makes a number of decodes. Returns the expected tokens per second, and the drafts of the last decode. */
  function run(
    machine: Machine,
    probabilities: readonly (readonly number[])[],
    answers: number,
    decodes = 600,
  ): { readonly rate: number; readonly drafted: readonly number[]; readonly costs: DecodeCosts } {
    const costs = new DecodeCosts();
    let ms = 0;
    let tokens = 0;
    let last: readonly number[] = [];
    for (let decode = 0; decode < decodes; decode++) {
      last = plan(costs, probabilities, answers);
      const took = machine(answers, sum(last));
      observe(costs, answers, sum(last), took);
      ms += took;
      tokens += answers;
      for (const [i, length] of last.entries()) tokens += sum(probabilities[i]?.slice(0, length) ?? []);
    }
    return { rate: (tokens * 1000) / ms, drafted: last, costs };
  }

  const plainRate = (machine: Machine, answers: number): number => (answers * 1000) / machine(answers, 0);

  test("that cost little are decoded", () => {
    expect(run(cheap, [sure], 1).rate).toBeGreaterThan(10 * plainRate(cheap, 1));
    expect(run(cheap, [unsure], 1).rate).toBeGreaterThan(1.4 * plainRate(cheap, 1));
  });

  test("that cost what they gain are not", () => {
    for (const probabilities of [sure, unsure]) {
      const { rate, drafted } = run(dear, [probabilities], 1);
      expect(drafted).toEqual([0]);
      expect(rate).toBeGreaterThan(0.95 * plainRate(dear, 1));
    }
  });

  test("are long or left out where few draft tokens cost more than they gain", () => {
    expect(run(stepped, [sure], 1).rate).toBeGreaterThan(1.8 * plainRate(stepped, 1));
    const { rate, drafted } = run(stepped, [unsure], 1);
    expect(drafted).toEqual([0]);
    expect(rate).toBeGreaterThan(0.97 * plainRate(stepped, 1));
  });

  test("of several answers share the tokens, the likelier ones first", () => {
    const { drafted } = run(cheap, [sure, unsure, []], 3);
    expect(drafted[0]).toBeGreaterThan(drafted[1] ?? 0);
    expect(drafted[2]).toBe(0);
  });

  // llama.cpp decoded the third token of seven drafts in a part of its own, which took as long as the rest.
  test("of several answers have the same length where a batch of others is computed in parts", () => {
    const probability = fc.double({ min: 0.1, max: 1, noNaN: true });
    const draft = fc.array(probability, { maxLength: 12 }).map((rates) => {
      let all = 1;
      return rates.map((rate) => (all *= rate));
    });
    const costs = new DecodeCosts();
    const longest = new Set<number>();
    fc.assert(
      fc.property(fc.array(draft, { minLength: 2, maxLength: 8 }), fc.boolean(), (probabilities, always) => {
        const answers = probabilities.length;
        for (let decode = 0; decode < 2; decode++) observe(costs, answers, 0, cheap(answers, 0));
        const lengths = planDrafts(costs, probabilities, { answers, maxTokens: 24, always, isEven: true });
        expect(new Set(lengths).size).toBe(1);
        expect(lengths[0]).toBeLessThanOrEqual(Math.min(...probabilities.map(({ length }) => length)));
        longest.add(lengths[0] ?? 0);
      }),
      { numRuns: 500 },
    );
    expect(longest.size).toBeGreaterThan(2);
  });

  // Answers in the same batch would have waited for the drafts of one that repeats itself.
  test("slow down an answer without a draft very little", () => {
    const machine: Machine = (answers, draftTokens) => 20 * answers + 8 * draftTokens;
    const { drafted } = run(machine, [sure], 2);
    expect(machine(2, drafted[0] ?? 0)).toBeLessThan(machine(2, 0) / 0.89);
  });

  test("continue on a machine that becomes slower for all sizes", () => {
    const { costs } = run(cheap, [sure], 1);
    for (let decode = 0; decode < 20; decode++) observe(costs, 1, 0, 5 * cheap(1, 0));
    expect(plan(costs, [sure], 1)[0]).toBeGreaterThan(10);
  });

  // Each size was tried for each number of answers, as if it cost a twentieth of a decode: an answer of 48 tokens took 8 % longer.
  test("of sizes that were never measured are expected to cost what tokens of prompts do", () => {
    const after = (promptMs: number): readonly number[] => {
      const costs = new DecodeCosts();
      costs.observe({ answers: 0, round: 0, promptTokens: 64, draftTokens: 0 }, promptMs);
      for (let decode = 0; decode < 4; decode++) observe(costs, 1, 0, 10);
      return plan(costs, [sure], 1);
    };
    expect(after(64 * 10)).toEqual([0]);
    expect(after(64)[0]).toBeGreaterThan(10);
  });

  test("are not judged by the first decode of a size, which may include initialization", () => {
    const seen = new Set<number>();
    const machine: Machine = (answers, draftTokens) => {
      if (seen.has(draftTokens)) return cheap(answers, draftTokens);
      seen.add(draftTokens);
      return 50 * cheap(answers, draftTokens);
    };
    expect(run(machine, [sure], 1).drafted[0]).toBeGreaterThan(10);
  });

  test("that cost too much long ago are tried again", () => {
    const { costs } = run(dear, [sure], 1);
    let drafts = 0;
    for (let decode = 0; decode < 20_000; decode++) {
      const [drafted = 0] = plan(costs, [sure], 1);
      if (drafted > 0) drafts++;
      observe(costs, 1, drafted, (drafted === 0 ? 1 : 0.5) * dear(1, drafted));
    }
    expect(drafts).toBeGreaterThan(0);
  });

  test("for all answers must be faster than answers one by one, where those are faster than all together", () => {
    const drafted = (singleMs: number): number => {
      const costs = new DecodeCosts();
      for (let i = 0; i < 10; i++) {
        observe(costs, 1, 0, singleMs);
        observe(costs, 4, 0, 44);
        for (const tokens of [1, 2, 3, 5, 7, 11, 15, 23, 31]) observe(costs, 4, tokens, 44 + 3 * tokens);
      }
      observe(costs, 4, 0, 44);
      return sum(plan(costs, [sure, sure, sure, sure], 4));
    };
    expect([drafted(44) > 0, drafted(7) > 0, drafted(3) > 0]).toEqual([true, true, false]);
  });

  test("on every machine: no more tokens than there are and may be, and little speed is lost", () => {
    const probabilities = fc
      .array(fc.double({ min: 0.05, max: 1, noNaN: true }), { maxLength: 40 })
      .map((rates) => rates.map((_, i) => rates.slice(0, i + 1).reduce((product, rate) => product * rate, 1)));
    const machines = fc
      .tuple(fc.array(fc.double({ min: 0, max: 3, noNaN: true }), { minLength: 40, maxLength: 40 }))
      .map(([steps]): Machine => {
        const sums = steps.map((_, i) => steps.slice(0, i).reduce((total, step) => total + step, 10));
        return (answers, draftTokens) => sums[Math.min(39, answers + draftTokens)] ?? 0;
      });
    fc.assert(
      fc.property(
        machines,
        fc.array(probabilities, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 0, max: 3 }),
        fc.integer({ min: 0, max: maxDraftTokens }),
        (machine, drafts, others, maxTokens) => {
          const answers = drafts.length + others;
          const { rate } = run(machine, drafts, answers, 1000);
          expect(rate).toBeGreaterThan(0.95 * plainRate(machine, answers));
          for (const always of [true, false]) {
            const costs = new DecodeCosts();
            observe(costs, answers, 0, 10);
            observe(costs, answers, 0, 10);
            const lengths = planDrafts(costs, drafts, { answers, maxTokens, always });
            expect(sum(lengths)).toBeLessThanOrEqual(maxTokens);
            for (const [i, length] of lengths.entries()) expect(length).toBeLessThanOrEqual(drafts[i]?.length ?? 0);
          }
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe("the depth of a model's drafts", () => {
  /** A machine on which a decode takes 10 ms and each draft token in it `tokenMs` more. */
  function depth(rates: readonly number[], stepMs: number, tokenMs = 0.2, isEven = false): number {
    const costs = new DecodeCosts();
    const answers = rates.length;
    for (let i = 0; i < 4; i++)
      for (const tokens of [0, 1, 7, 31]) observe(costs, answers, tokens, 10 + tokens * tokenMs);
    return draftDepth(costs, rates, { answers, maxDepth: 8, isEven, draftingMs: (tokens) => tokens * stepMs });
  }

  test("is 0 where drafts do not pay, and grows with the acceptance rate", () => {
    expect(depth([0.1], 1)).toBe(0);
    expect(depth([0.9], 9)).toBe(0);
    const depths = [0.3, 0.5, 0.7, 0.9, 1].map((rate) => depth([rate], 1));
    expect(depths).toEqual(depths.toSorted((one, other) => one - other));
    // A batch has 7 draft tokens or 11, not 8.
    expect(depths.at(-1)).toBe(7);
    // Each draft token costs the answering model as much as a decode.
    expect(depth([1], 0.5, 10)).toBe(0);
  });

  // Answers whose text repeats kept the model from drafting for the others, whose missing drafts kept the text from it.
  test("counts the drafts that other answers have from their text", () => {
    const costs = new DecodeCosts();
    costs.observe({ answers: 0, round: 0, promptTokens: 64, draftTokens: 0 }, 128);
    for (let decode = 0; decode < 4; decode++) observe(costs, 4, 0, 40);
    const options = { answers: 4, maxDepth: 8, draftingMs: (depth: number) => depth };
    expect(draftDepth(costs, [0.95, 0.95], { ...options, ofText: [sure, sure] })).toBeGreaterThan(2);
    expect(draftDepth(costs, [0.95, 0.95], options)).toBeLessThan(2);
  });

  test("is 0 before the cost of a decode without drafts is known", () => {
    expect(draftDepth(new DecodeCosts(), [1], { answers: 1, maxDepth: 8, draftingMs: () => 0 })).toBe(0);
  });

  test("for all rates, drafts of the same length give more tokens per second, and no answer becomes much slower", () => {
    const rate = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(rate, { minLength: 1, maxLength: 4 }),
        fc.double({ min: 0.1, max: 8, noNaN: true }),
        (rates, stepMs) => {
          const best = depth(rates, stepMs, 0.2, true);
          const speed = (tokens: number): number => {
            let gained = 0;
            for (let at = 1; at <= tokens; at++) for (const each of rates) gained += each ** at;
            return (rates.length + gained) / (10 + tokens * rates.length * 0.2 + tokens * stepMs);
          };
          if (best === 0) return;
          // 1.08 and 0.9, less what the table of costs is off.
          expect(speed(best)).toBeGreaterThan(speed(0) * 1.02);
          const slowest = Math.min(
            ...rates.map((each) => [...Array(best).keys()].reduce((sum, at) => sum + each ** (at + 1), 1)),
          );
          expect((slowest / (10 + best * rates.length * 0.2 + best * stepMs)) * 10).toBeGreaterThan(0.85);
        },
      ),
    );
  });
});
