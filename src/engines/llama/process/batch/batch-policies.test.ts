import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodesOneByOne, planDrafts, PrefillChunkSize, PrefillOrder } from "./batch-policies.ts";
import { DecodeCosts, maxDraftTokens } from "./decode-costs.ts";

/** Records a decode without prompt tokens. */
function observe(costs: DecodeCosts, answers: number, draftTokens: number, ms: number): void {
  costs.observe({ answers, round: answers, promptTokens: 0, draftTokens }, ms);
}

describe("prefill chunks", () => {
  /** A machine on which answers take `stepMs`, and a chunk takes what `chunkMs` says. */
  function learned(
    stepMs: number,
    chunkMs: (tokens: number) => number,
  ): { size: PrefillChunkSize; costs: DecodeCosts } {
    const costs = new DecodeCosts();
    const size = new PrefillChunkSize(costs, 496);
    if (stepMs > 0) for (let i = 0; i < 20; i++) observe(costs, 1, 0, stepMs);
    for (let i = 0; i < 50; i++) chunk(costs, size, size.tokens, chunkMs(size.tokens));
    return { size, costs };
  }

  function chunk(costs: DecodeCosts, size: PrefillChunkSize, promptTokens: number, ms: number, answers = 0): void {
    costs.observe({ answers, round: answers, promptTokens, draftTokens: 0 }, ms);
    size.observe(promptTokens, ms);
  }

  /** Where a decode has a fixed cost and a cost per token. */
  const linear = (fixedMs: number, tokenMs: number): number =>
    learned(fixedMs, (tokens) => fixedMs + tokens * tokenMs).size.tokens;

  test("take about 50 ms", () => {
    expect(10 + linear(10, 1.6) * 1.6).toBeGreaterThan(40);
    expect(10 + linear(10, 1.6) * 1.6).toBeLessThan(60);
    expect(linear(1, 0.01)).toBe(496);
  });

  test("take twice a step of answers where that is slow, and have a minimum size", () => {
    // Chunks of 50 ms would have two tokens here, and each would pay the fixed cost of a decode.
    expect(linear(400, 20)).toBe(20);
    expect(linear(40, 20)).toBe(16);
  });

  // Chunks of 25 tokens of a 135M model took 118 ms, those of 64 took 160.
  test("are no smaller than the size after which larger ones cost little less per token", () => {
    expect(learned(0, (tokens) => tokens * (tokens < 64 ? 4.7 : 2.5)).size.tokens).toBe(64);
  });

  test("do not change after the short rest of a prompt", () => {
    const costs = new DecodeCosts();
    const size = new PrefillChunkSize(costs, 496);
    const before = size.tokens;
    chunk(costs, size, 1, 80);
    expect(size.tokens).toBe(before);
  });

  test("are larger where few answers wait; their duration is known", () => {
    const { size, costs } = learned(2, (tokens) => tokens * 2);
    expect(size.tokens).toBe(25);
    expect(new PrefillChunkSize(new DecodeCosts(), 496).tokensFor(0, 1)).toBe(64);
    expect(size.tokensFor(0, 1)).toBe(200);
    expect([size.tokensFor(1, 1), size.tokensFor(4, 1), size.tokensFor(2, 4)]).toEqual([25, 25, 100]);
    const expected = (promptTokens: number, answers: number): number =>
      costs.expectedMs({ answers, round: answers, promptTokens, draftTokens: 0 });
    expect(expected(0, 1)).toBeCloseTo(2, 1);
    expect(expected(25, 0)).toBeCloseTo(52, 0);
  });

  test("of each waiting prompt have the time of a chunk, up to 400 ms in a batch with answers", () => {
    const { size } = learned(2, (tokens) => tokens * 2);
    expect([1, 2, 4, 8].map((prompts) => size.tokensFor(8, prompts))).toEqual([25, 50, 100, 200]);
  });

  // Measured: 135M, Q8_0, one thread. A prompt in batches with answers was prefilled in chunks of 16 tokens, at half again the cost.
  test("do not include the time of answers in the same batch", () => {
    const costs = new DecodeCosts();
    const size = new PrefillChunkSize(costs, 496);
    const prompt = (tokens: number): number => (tokens < 22 ? 45 : tokens * 2.1);
    for (let i = 0; i < 8; i++) observe(costs, 1, 0, 40);
    for (let i = 0; i < 50; i++) chunk(costs, size, size.tokens, prompt(size.tokens) + 40, 1);
    expect(size.tokens).toBe(32);
  });
});

describe("the order of prompts", () => {
  interface Prompt {
    readonly task: { promptLeft: number; readonly order: number };
  }

  /** The step in which each prompt is completed, where a step prefills a number of tokens of the first one. */
  function steps(lengths: readonly number[], tokens: number): number[] {
    const order = new PrefillOrder();
    const prompts: Prompt[] = lengths.map((promptLeft, at) => ({ task: { promptLeft, order: at } }));
    const completed = lengths.map(() => 0);
    for (let step = 1; prompts.some(({ task }) => task.promptLeft > 0); step++) {
      const [first] = order.next(prompts.filter(({ task }) => task.promptLeft > 0));
      if (!first) break;
      const { task } = first;
      task.promptLeft = Math.max(0, task.promptLeft - tokens);
      if (task.promptLeft === 0) completed[task.order] = step;
    }
    return completed;
  }

  // Prompts were prefilled in the order of their slots: one of 20 tokens waited for one of 8,000 in a lower slot.
  test("a short prompt does not wait for a long one that came before it", () => {
    const [, short] = steps([8000, 20], 50);
    expect(short).toBeLessThanOrEqual(2);
  });

  test("every prompt takes at most twice the steps that it takes when prompts are served in order", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 8 }), (lengths) => {
        let before = 0;
        for (const [i, step] of steps(lengths, 50).entries()) {
          before += Math.ceil((lengths[i] ?? 0) / 50);
          expect(step).toBeLessThanOrEqual(2 * before);
        }
      }),
    );
  });
});

describe("answers together or one by one", () => {
  /** The duration of a decode of a number of answers. */
  type Machine = (answers: number) => number;

  /** Measured: Q8_0, one thread of a server's processor. */
  const slowBatches: Machine = (answers) => (answers === 1 ? 7 : answers < 8 ? 25 + 5 * answers : 48);
  const cheapBatches: Machine = (answers) => 20 + answers;

  /** Decodes `tokens` of each answer. Returns the duration, and the share of tokens that were decoded one by one. */
  function run(
    machine: Machine,
    answers: number,
    tokens = 200,
    costs = new DecodeCosts(),
  ): { ms: number; single: number } {
    let ms = 0;
    let single = 0;
    for (let sampled = 0; sampled < tokens * answers;) {
      const count = decodesOneByOne(costs, answers) ? 1 : answers;
      const took = machine(count);
      observe(costs, count, 0, took);
      ms += took;
      sampled += count;
      if (count === 1) single += 1 / (tokens * answers);
    }
    return { ms, single };
  }

  test("one by one where llama.cpp takes longer for a batch of them", () => {
    for (const answers of [2, 4, 5]) expect(run(slowBatches, answers).single, `${answers}`).toBeGreaterThan(0.95);
    expect(run(slowBatches, 8).single).toBeLessThan(0.05);
  });

  test("together where that is faster, which a few single decodes measure", () => {
    expect(run(cheapBatches, 2).single).toBeLessThan(0.05);
    expect(run(cheapBatches, 16).single).toBeLessThan(0.05);
  });

  test("a single answer is always alone", () => {
    expect(run(cheapBatches, 1).single).toBeCloseTo(1);
  });

  test("when the machine changes, the other way is found", () => {
    const costs = new DecodeCosts();
    expect(run(slowBatches, 4, 500, costs).single).toBeGreaterThan(0.9);
    run(cheapBatches, 4, 2000, costs);
    expect(run(cheapBatches, 4, 500, costs).single).toBeLessThan(0.05);
  });

  // The fastest of the last decodes counts: an average included two slow ones, which another program had caused.
  test("a few slow decodes, caused by other load, change nothing", () => {
    const costs = new DecodeCosts();
    run(slowBatches, 4, 100, costs);
    for (let i = 0; i < 3; i++) observe(costs, 1, 0, 40);
    expect(decodesOneByOne(costs, 4)).toBe(true);
  });

  test("on every machine it takes at most 5 % longer than the better of both ways, and what was measured", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 16 }),
        fc.double({ min: 1, max: 100, noNaN: true }),
        fc.double({ min: 1, max: 400, noNaN: true }),
        (answers, single, together) => {
          const tokens = 2000;
          const best = tokens * Math.min(single * answers, together);
          const measuring = 8 * (together + single) * (1 + tokens / 256);
          expect(run((count) => (count === 1 ? single : together), answers, tokens).ms).toBeLessThan(
            best * 1.06 + measuring,
          );
        },
      ),
    );
  });
});

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

  const sure = Array.from({ length: maxDraftTokens }, (_, i) => 0.98 ** i);
  const unsure = Array.from({ length: maxDraftTokens }, (_, i) => 0.4 ** (i + 1));

  const plan = (
    costs: DecodeCosts,
    probabilities: readonly (readonly number[])[],
    answers: number,
    oneByOneMs?: number,
  ): readonly number[] =>
    planDrafts(costs, probabilities, {
      answers,
      maxTokens: maxDraftTokens,
      always: false,
      ...(oneByOneMs !== undefined && { oneByOneMs }),
    });

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
    const costs = new DecodeCosts();
    const four = [sure, sure, sure, sure];
    for (let i = 0; i < 10; i++) {
      observe(costs, 4, 0, 44);
      for (const drafted of [1, 2, 3, 5, 7, 11, 15, 23, 31]) observe(costs, 4, drafted, 44 + 3 * drafted);
    }
    observe(costs, 4, 0, 44);
    expect(sum(plan(costs, four, 4))).toBeGreaterThan(0);
    expect(sum(plan(costs, four, 4, 28))).toBeGreaterThan(0);
    expect(sum(plan(costs, four, 4, 12))).toBe(0);
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
