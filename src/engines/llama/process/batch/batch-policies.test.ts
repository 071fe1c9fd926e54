import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodesOneByOne, draftDepth, planDrafts, PrefillChunkSize, PrefillOrder } from "./batch-policies.ts";
import { DecodeCosts, maxDraftTokens } from "./decode-costs.ts";

/** Records a decode without prompt tokens. */
function observe(costs: DecodeCosts, answers: number, draftTokens: number, ms: number): void {
  costs.observe({ answers, round: answers, promptTokens: 0, draftTokens }, ms);
}

describe("prefill chunks", () => {
  /** The duration of a batch with this number of tokens after a prompt of this length. */
  type Machine = (tokens: number, before: number) => number;
  const limits = { maxTokens: 512, maxGapMs: 250, maxBatchMs: 10_000 };

  /** What a prompt costs, in chunks beside an answer that takes `stepMs`, or alone (`stepMs` 0). */
  function prefill(machine: Machine, { length = 4000, stepMs = 0, costs = new DecodeCosts() } = {}) {
    const size = new PrefillChunkSize(costs, limits);
    const answers = stepMs > 0 ? 1 : 0;
    if (stepMs > 0) for (let i = 0; i < 20; i++) observe(costs, 1, 0, stepMs);
    const chunks: { tokens: number; ms: number }[] = [];
    for (let before = 0; before < length;) {
      const tokens = Math.min(length - before, answers > 0 ? size.shared(true) - answers : size.alone);
      const ms = machine(tokens + answers, before);
      costs.observe({ answers, round: answers, promptTokens: tokens, draftTokens: 0 }, ms + stepMs);
      chunks.push({ tokens, ms: ms + stepMs });
      before += tokens;
    }
    return { costs, size, chunks, ms: chunks.reduce((sum, chunk) => sum + chunk.ms, 0) };
  }

  /** Measured: 135M, Q8_0, one thread. Fewer than 64 tokens are computed with slower code. */
  const tiles: Machine = (tokens, before) =>
    tokens < 64 ? tokens * (3 + before * 0.0034) : Math.ceil(tokens / 64) * (120 + before * 0.063);
  /** A fixed cost, and a cost per token, which does not depend on their number. */
  const linear =
    (fixedMs: number, tokenMs: number): Machine =>
    (tokens) =>
      fixedMs + tokens * tokenMs;

  test("of a prompt alone are whole batches, after the first one", () => {
    expect(prefill(tiles).chunks.map(({ tokens }) => tokens)).toEqual([64, ...Array<number>(7).fill(512), 352]);
  });

  test("of a prompt alone take at most the time of a batch, but have 64 tokens", () => {
    expect(prefill(linear(0, 50)).chunks[1]?.tokens).toBe(192);
    expect(prefill(linear(0, 1000)).chunks[1]?.tokens).toBe(64);
  });

  test("where only prompts of similar lengths wait, take at most four times the longest gap, but have 128 tokens", () => {
    const among = (tokenMs: number): number => prefill(linear(0, tokenMs)).size.amongSimilarPrompts;
    expect(among(1)).toBe(512);
    expect(among(4)).toBe(192);
    expect(among(50)).toBe(128);
  });

  // Chunks aimed at 50 ms. The longer the context was, the smaller they were, and the more each token cost: 96 tokens/s of 220.
  test("have 64 tokens, however long the context is, where fewer cost more", () => {
    const { chunks, ms } = prefill(tiles, { stepMs: 10, length: 16_000 });
    expect(ms).toBeLessThan(1.1 * prefill(tiles, { length: 16_000 }).ms + 10 * chunks.length);
    const small = chunks.filter(({ tokens }) => tokens < 63).length;
    expect(small).toBeLessThan(chunks.length / 10);
  });

  test("beside answers take at most the longest gap, after the first one and with its answers", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 20, noNaN: true }),
        fc.double({ min: 0.001, max: 3, noNaN: true }),
        fc.double({ min: 0.1, max: 50, noNaN: true }),
        (fixedMs, tokenMs, stepMs) => {
          const { chunks } = prefill(linear(fixedMs, tokenMs), { stepMs });
          for (const { ms, tokens } of chunks.slice(1))
            if (tokens >= 64) expect(ms).toBeLessThanOrEqual(limits.maxGapMs);
        },
      ),
    );
  });

  test("fill the gap where that is possible", () => {
    expect(prefill(linear(5, 0.1), { stepMs: 10 }).chunks[2]?.tokens).toBeGreaterThan(440);
    expect(prefill(linear(0, 1), { stepMs: 10 }).chunks[2]?.tokens).toBe(127);
  });

  test("are smaller than 64 tokens where those take too long and fewer cost as much each", () => {
    const { chunks } = prefill(linear(0, 20), { stepMs: 40 });
    const sizes = chunks.slice(3).map(({ tokens }) => tokens + 1);
    // The other sizes are measured again at times.
    expect(sizes.filter((size) => size === 16).length).toBeGreaterThan(0.95 * sizes.length);
  });

  test("are those of the machine as it is now, after it was ten times slower", () => {
    const costs = new DecodeCosts();
    prefill(linear(0, 30), { stepMs: 10, costs });
    const { chunks } = prefill(linear(0, 1), { stepMs: 10, costs });
    expect(chunks.at(-2)?.tokens).toBe(127);
  });

  test("one slow decode, caused by other load, changes little", () => {
    const { costs, size } = prefill(linear(0, 1), { stepMs: 10 });
    costs.observe({ answers: 1, round: 1, promptTokens: 127, draftTokens: 0 }, 5000);
    expect(size.shared(true)).toBe(128);
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

  // Each got half of the batches: the older one, too, was complete only shortly before the other.
  test("of two prompts of similar lengths, the older one does not wait", () => {
    expect(steps([8000, 6000], 50)).toEqual([160, 280]);
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

describe("the depth of a model's drafts", () => {
  /** A machine on which a decode takes 10 ms and each draft token in it `tokenMs` more. */
  function depth(rates: readonly number[], stepMs: number, tokenMs = 0.2): number {
    const costs = new DecodeCosts();
    const answers = rates.length;
    for (let i = 0; i < 4; i++)
      for (const tokens of [0, 1, 7, 31]) observe(costs, answers, tokens, 10 + tokens * tokenMs);
    return draftDepth(costs, rates, { answers, maxDepth: 8, draftingMs: (tokens) => tokens * stepMs });
  }

  test("is 0 where drafts do not pay, and grows with the acceptance rate", () => {
    expect(depth([0.1], 1)).toBe(0);
    expect(depth([0.9], 9)).toBe(0);
    const depths = [0.3, 0.5, 0.7, 0.9, 1].map((rate) => depth([rate], 1));
    expect(depths).toEqual(depths.toSorted((one, other) => one - other));
    expect(depths.at(-1)).toBe(8);
    // Each draft token costs the answering model as much as a decode.
    expect(depth([1], 0.5, 10)).toBe(0);
  });

  // Answers whose text repeats kept the model from drafting for the others, whose missing drafts kept the text from it.
  test("counts the drafts that other answers have from their text", () => {
    const costs = new DecodeCosts();
    costs.observe({ answers: 0, round: 0, promptTokens: 64, draftTokens: 0 }, 128);
    for (let decode = 0; decode < 4; decode++) observe(costs, 4, 0, 40);
    const options = { answers: 4, maxDepth: 8, draftingMs: (depth: number) => depth };
    expect(draftDepth(costs, [0.95, 0.95], { ...options, ofText: [6, 6] })).toBeGreaterThan(2);
    expect(draftDepth(costs, [0.95, 0.95], options)).toBe(0);
  });

  test("is 0 before the cost of a decode without drafts is known", () => {
    expect(draftDepth(new DecodeCosts(), [1], { answers: 1, maxDepth: 8, draftingMs: () => 0 })).toBe(0);
  });

  test("for all rates, drafts give more tokens per second, and no answer becomes much slower", () => {
    const rate = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(rate, { minLength: 1, maxLength: 4 }),
        fc.double({ min: 0.1, max: 8, noNaN: true }),
        (rates, stepMs) => {
          const best = depth(rates, stepMs);
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
