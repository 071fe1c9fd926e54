import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DecodeCosts } from "./decode-costs.ts";
import { after, choose, decodesOneByOne, firstState, type Plan, type PlannedSlot, type PlanLimits } from "./plan.ts";

/** The duration of a batch in milliseconds, after a prompt of this length. */
type Machine = (promptTokens: number, answers: number, before: number) => number;

/** A fixed cost, and a cost per token. */
const linear =
  (fixedMs: number, tokenMs: number): Machine =>
  (promptTokens, answers) =>
    fixedMs + tokenMs * (promptTokens + answers);

/** Measured: 135M, Q8_0, one thread. Fewer than 64 tokens are computed with slower code. */
const tiles: Machine = (promptTokens, answers, before) => {
  if (promptTokens === 0) return 7 * answers;
  const tokens = promptTokens + answers;
  return tokens < 64 ? tokens * (3 + before * 0.0034) : Math.ceil(tokens / 64) * (120 + before * 0.063);
};

const longAnswer = 1000;

class Slot implements PlannedSlot {
  readonly id: number;
  readonly order: number;
  promptLeft: number;
  generated: number;
  /** The prompt begins with this number of rows of an image. */
  rows = 0;
  /** A checkpoint is made whenever this number of tokens is left. */
  checkpoint = 0;
  /** The logprobs of the prompt are requested. */
  wantsPrompt = false;

  /** With `promptLeft` 0, it has been answering for long. */
  constructor(id: number, promptLeft: number, order = id) {
    this.id = id;
    this.order = order;
    this.promptLeft = promptLeft;
    this.generated = promptLeft === 0 ? longAnswer : 0;
  }

  get readsPrompt(): boolean {
    return this.wantsPrompt && this.promptLeft > 1 && this.rows === 0;
  }

  get chunkLimit(): number {
    if (this.rows > 0) return 0;
    const left = this.readsPrompt ? this.promptLeft - 1 : this.promptLeft;
    return this.checkpoint > 0 && this.promptLeft > this.checkpoint ? this.promptLeft - this.checkpoint : left;
  }
}

const slotsOf = (prompts: readonly number[]): Slot[] => prompts.map((left, id) => new Slot(id, left));

interface Step {
  readonly plan: Plan<Slot>;
  readonly promptTokens: number;
  readonly answers: number;
  /** Tokens whose logits are read. */
  readonly outputs: number;
  readonly ms: number;
}

/** Decodes what is planned, in virtual time. */
class Simulated {
  state = firstState;
  readonly costs = new DecodeCosts();
  readonly #machine: Machine;
  readonly #limits: PlanLimits;

  constructor(machine: Machine, limits: Partial<PlanLimits> = {}) {
    this.#machine = machine;
    const rest = { maxTokens: 512, maxGapMs: 250, maxBatchMs: 10_000, maxOutputs: 64, unifiedKv: false };
    this.#limits = { ...rest, ...limits };
  }

  plan(slots: readonly Slot[], othersWait = false): Plan<Slot> {
    return choose({ ...this.state, othersWait }, slots, this.costs, this.#limits);
  }

  step(slots: readonly Slot[], { othersWait = false, before = 0 } = {}): Step {
    const plan = this.plan(slots, othersWait);
    const answering = plan.shares.filter(({ slot }) => slot.promptLeft === 0);
    const promptTokens = plan.shares.reduce((sum, { slot, tokens }) => sum + (slot.promptLeft > 0 ? tokens : 0), 0);
    const answers = answering.length;
    const outputs = plan.shares.reduce((sum, { slot, tokens }) => sum + (slot.readsPrompt ? tokens : 1), 0);
    const ms = this.#machine(promptTokens, answers, before);
    const round = plan.round.length;
    this.costs.observe({ answers, round, promptTokens, draftTokens: 0 }, ms);
    const decoded = plan.shares.map(({ slot }) => slot);
    this.state = after(this.state, decoded, promptTokens);
    for (const { slot, tokens } of plan.shares) {
      const isPrefilled = slot.promptLeft > 0 && tokens === slot.promptLeft;
      if (slot.promptLeft === 0 || isPrefilled) slot.generated++;
      slot.promptLeft -= Math.min(tokens, slot.promptLeft);
      slot.rows = Math.max(0, slot.rows - tokens);
    }
    return { plan, promptTokens, answers, outputs, ms };
  }

  /** Decodes until all prompts are prefilled. */
  prefill(slots: readonly Slot[]): Step[] {
    const steps: Step[] = [];
    while (slots.some(({ promptLeft }) => promptLeft > 0)) {
      steps.push(this.step(slots));
      expect(steps.length).toBeLessThan(10_000);
    }
    return steps;
  }
}

const shapes = (steps: readonly Step[]): readonly (readonly [number, number])[] =>
  steps.map(({ promptTokens, answers }) => [promptTokens, answers]);

/** A machine that has measured 2 ms for each token. */
function measured(limits: Partial<PlanLimits> = {}): Simulated {
  const simulated = new Simulated(linear(0, 2), limits);
  simulated.step(slotsOf([64]));
  return simulated;
}

describe("on every machine, for all slots", () => {
  const machine = fc
    .tuple(fc.double({ min: 0, max: 100, noNaN: true }), fc.double({ min: 0.01, max: 20, noNaN: true }))
    .map(([fixed, token]) => ({ fixed, token }));
  const limits = fc.record({
    unifiedKv: fc.boolean(),
    maxTokens: fc.constantFrom(64, 128, 512),
    maxOutputs: fc.constantFrom(16, 64),
  });
  const slot = fc.record({
    promptLeft: fc.oneof(fc.constant(0), fc.constant(1), fc.integer({ min: 1, max: 600 })),
    rows: fc.constantFrom(0, 0, 0, 40),
    checkpoint: fc.constantFrom(0, 0, 10, 100),
    wantsPrompt: fc.constantFrom(false, false, true),
  });
  const some = fc.array(slot, { minLength: 1, maxLength: 12 });

  /** Each step until all prompts are prefilled, and some of the answers after that. */
  function forAll(check: (steps: readonly Step[], slots: readonly Slot[], limits: PlanLimits) => void): void {
    fc.assert(
      fc.property(machine, limits, some, ({ fixed, token }, own, all) => {
        const slots = all.map(({ promptLeft, rows, ...more }, id) =>
          Object.assign(new Slot(id, promptLeft), { ...more, rows: Math.min(rows, Math.max(0, promptLeft - 1)) }),
        );
        const simulated = new Simulated(linear(fixed, token), own);
        const steps = simulated.prefill(slots);
        for (let at = 0; at < 40; at++) steps.push(simulated.step(slots));
        check(steps, slots, { maxGapMs: 250, maxBatchMs: 10_000, ...own });
      }),
    );
  }

  test("a batch is neither empty nor larger than its limits, and each chunk is there", () => {
    forAll((steps, _, { maxTokens, maxOutputs }) => {
      for (const { plan, outputs } of steps) {
        const tokens = plan.shares.reduce((sum, share) => sum + share.tokens, 0);
        expect(tokens).toBeGreaterThan(0);
        expect(tokens).toBeLessThanOrEqual(maxTokens);
        expect(new Set(plan.shares.map(({ slot: { id } }) => id)).size).toBe(plan.shares.length);
        expect(outputs).toBeLessThanOrEqual(maxOutputs);
      }
    });
  });

  test("without a unified KV cache, all slots of a batch have the same number of tokens", () => {
    forAll((steps, _, { unifiedKv }) => {
      if (!unifiedKv)
        for (const { plan } of steps) expect(new Set(plan.shares.map(({ tokens }) => tokens)).size).toBe(1);
    });
  });

  test("between two batches without them, all waiting answers get a token", () => {
    forAll((steps, slots) => {
      const waited = new Map(slots.map((each) => [each, 0]));
      for (const { plan, answers, promptTokens } of steps) {
        const isChunk = answers === 0 && promptTokens > 0;
        for (const [each, chunks] of waited) if (isChunk) waited.set(each, chunks + 1);
        for (const each of plan.shares) waited.set(each.slot, 0);
        // Those that begin, and an image with the chunk after it.
        for (const each of slots) if (each.generated > longAnswer) expect(waited.get(each)).toBeLessThanOrEqual(2);
      }
    });
  });

  test("all answers get the same number of tokens", () => {
    forAll((steps, slots) => {
      const tokens = slots.map(({ id }) =>
        steps
          .slice(-40)
          .reduce((sum, { plan }) => sum + (plan.shares.some((share) => share.slot.id === id) ? 1 : 0), 0),
      );
      // Decoding one by one is tried at times.
      expect(Math.max(...tokens) - Math.min(...tokens)).toBeLessThanOrEqual(6);
    });
  });
});

test("with a unified KV cache, answers continue in each batch with prompts", () => {
  for (const { answers, promptTokens } of new Simulated(linear(30, 2), { unifiedKv: true }).prefill(
    slotsOf([0, 0, 600, 300]),
  )) {
    expect(promptTokens).toBeGreaterThan(0);
    expect(answers).toBeGreaterThanOrEqual(2);
  }
});

// Eight prompts, three of which were a token longer, had a step of these three tokens.
test("without a unified KV cache, the last token of a prompt is decoded together with answers", () => {
  const simulated = measured();
  const slots = slotsOf([16, 17, 16, 17]);
  expect(shapes([simulated.step(slots), simulated.step(slots)])).toEqual([
    [64, 0],
    [2, 2],
  ]);
});

describe("prefill chunks", () => {
  const alone = (machine: Machine, length = 4000): Step[] => {
    const slot = new Slot(0, length);
    const simulated = new Simulated(machine);
    const steps: Step[] = [];
    while (slot.promptLeft > 0) steps.push(simulated.step([slot], { before: length - slot.promptLeft }));
    return steps;
  };
  /** Beside an answer, whose steps are left out. */
  const beside = (machine: Machine, length = 4000, simulated = new Simulated(machine)): Step[] => {
    const [answer, prompt] = [new Slot(0, 0), new Slot(1, length)];
    for (let at = 0; at < 20; at++) simulated.step([answer]);
    const steps: Step[] = [];
    while (prompt.promptLeft > 0) steps.push(simulated.step([answer, prompt], { before: length - prompt.promptLeft }));
    return steps.filter(({ promptTokens }) => promptTokens > 0);
  };
  const tokensOf = (steps: readonly Step[]): number[] => steps.map(({ promptTokens }) => promptTokens);
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
  const msOf = (steps: readonly Step[]): number => sum(steps.map(({ ms }) => ms));

  test("of a prompt alone are whole batches, after the first one", () => {
    expect(tokensOf(alone(tiles))).toEqual([64, ...Array<number>(7).fill(512), 352]);
  });

  test("of a prompt alone take at most the time of a batch, but have 64 tokens", () => {
    expect(alone(linear(0, 50))[1]?.promptTokens).toBe(128);
    expect(alone(linear(0, 1000))[1]?.promptTokens).toBe(64);
  });

  // A rest of 48 tokens took longer than 128 tokens.
  test("do not leave a short rest", () => {
    fc.assert(
      fc.property(fc.integer({ min: 128, max: 2000 }), (length) => {
        for (const tokens of tokensOf(alone(linear(30, 2), length))) expect(tokens).toBeGreaterThanOrEqual(64);
      }),
    );
  });

  // Chunks aimed at 50 ms. The longer the context was, the smaller they were, and the more each token cost: 96 tokens/s of 220.
  test("have 64 tokens, however long the context is, where fewer cost more", () => {
    const steps = beside(tiles, 16_000);
    expect(msOf(steps)).toBeLessThan(1.1 * msOf(alone(tiles, 16_000)));
    expect(steps.filter(({ promptTokens }) => promptTokens < 63).length).toBeLessThan(steps.length / 10);
  });

  test("beside an answer take at most the longest gap with its step, after the first one", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 20, noNaN: true }),
        fc.double({ min: 0.001, max: 3, noNaN: true }),
        (fixedMs, tokenMs) => {
          for (const { ms, promptTokens } of beside(linear(fixedMs, tokenMs)).slice(1))
            if (promptTokens >= 64) expect(ms + fixedMs + tokenMs).toBeLessThanOrEqual(250.001);
        },
      ),
    );
  });

  test("fill the gap where that is possible", () => {
    expect(beside(linear(5, 0.1))[2]?.promptTokens).toBe(512);
    expect(beside(linear(0, 1))[2]?.promptTokens).toBe(192);
  });

  test("are smaller than 64 tokens where those take too long and fewer cost as much each", () => {
    const sizes = tokensOf(beside(linear(0, 20))).slice(3);
    // The other sizes are measured again at times.
    expect(sizes.filter((size) => size === 16).length).toBeGreaterThan(0.95 * sizes.length);
  });

  test("are those of the machine as it is now, after it was ten times slower", () => {
    let tokenMs = 30;
    const changing: Machine = (promptTokens, answers) => tokenMs * (promptTokens + answers);
    const simulated = new Simulated(changing);
    beside(changing, 4000, simulated);
    tokenMs = 1;
    expect(beside(changing, 4000, simulated).at(-2)?.promptTokens).toBeGreaterThanOrEqual(128);
  });

  test("one slow decode, caused by other load, changes little", () => {
    const simulated = new Simulated(linear(0, 1));
    beside(linear(0, 1), 4000, simulated);
    simulated.costs.observe({ answers: 0, round: 0, promptTokens: 128, draftTokens: 0 }, 5000);
    expect(tokensOf(beside(linear(0, 1), 1000, simulated))[0]).toBe(128);
  });

  // Four prompts of 500 tokens were processed in chunks of 64 and rests of 52: as with answers to wait for, and 12 % slower than in llama-server.
  test("of prompts of similar lengths take at most four gaps, but have 128 tokens", () => {
    const among = (tokenMs: number): number => {
      const simulated = new Simulated(linear(0, tokenMs), { unifiedKv: true });
      simulated.step(slotsOf([64]));
      return simulated.step(slotsOf([1000, 900, 800])).promptTokens;
    };
    expect([1, 4, 50].map((tokenMs) => among(tokenMs))).toEqual([512, 192, 128]);
  });
});

describe("who waits", () => {
  test.each([true, false])("short prompts that arrive together are in one batch (unified: %s)", (unifiedKv) => {
    // Sixteen prompts of 48 tokens took 30 ms of CPU each longer than in llama-server: one batch for each, with answers between them.
    expect(measured({ unifiedKv }).step(slotsOf([32, 32, 32, 32])).promptTokens).toBe(128);
  });

  // A batch of whole tiles had one prompt of 48 tokens where two fit into the gap: answers that begin one after another end so, and each
  // step with some of them costs as much as one with all.
  test("beside an answer, a batch has as many short prompts as fit into the longest gap", () => {
    expect(measured().step(slotsOf([0, 48, 48, 48])).promptTokens).toBe(96);
    expect(measured().step(slotsOf([0, 300, 300])).promptTokens).toBe(64);
  });

  // Sixteen requests of 48 tokens had one prompt in each batch, and a step of the answers so far after it.
  test("answers that have just begun wait for a batch of short prompts, four gaps long", () => {
    const simulated = measured();
    const slots = slotsOf([1, ...Array<number>(16).fill(48)]);
    const [first] = slots;
    const steps = [simulated.step([slots[0] ?? new Slot(0, 1)]), ...simulated.prefill(slots)];
    expect(shapes(steps)).toEqual([
      [1, 0],
      [480, 0],
      [0, 11],
      [288, 0],
    ]);
    if (first) first.generated = longAnswer;
    expect(shapes(simulated.prefill([...slots, new Slot(17, 100), new Slot(18, 100)]))[1]).toEqual([100, 0]);
  });

  test("only a prompt that nothing waits for, and prompts of similar lengths, may be aborted; not after an interruption", () => {
    const isAbortable = (prompts: readonly number[], othersWait = false, recovering = 0): boolean => {
      const simulated = measured();
      simulated.state = { ...simulated.state, recovering };
      return simulated.step(slotsOf(prompts), { othersWait }).plan.isAbortable;
    };
    expect([isAbortable([5000]), isAbortable([5000, 4000])]).toEqual([true, true]);
    expect([isAbortable([5000], true), isAbortable([5000, 0]), isAbortable([5000, 300])]).toEqual([
      false,
      false,
      false,
    ]);
    expect([isAbortable([5000], false, 512), isAbortable([5000, 4000], false, 512)]).toEqual([false, false]);
  });

  test("a prompt that was interrupted continues until it has processed what it may have lost", () => {
    const simulated = new Simulated(linear(0, 3));
    simulated.state = { ...simulated.state, recovering: 128 };
    const slot = new Slot(0, 5000);
    const abortable = [1, 2, 3].map(() => simulated.step([slot]).plan.isAbortable);
    expect(abortable).toEqual([false, false, true]);
  });

  test("rows of an image and all others take turns", () => {
    const image = Object.assign(new Slot(1, 2000), { rows: 1900 });
    const slots = [new Slot(0, 0), image];
    const simulated = measured();
    const turns = Array.from({ length: 6 }, () => simulated.step(slots).plan.isImage);
    expect(turns).toEqual([true, false, true, false, true, false]);
  });
});

describe("the order of prompts", () => {
  /** The step in which each prompt is completed, where a step prefills at most 64 tokens. */
  function completed(lengths: readonly number[]): number[] {
    const simulated = new Simulated(linear(0, 1), { maxTokens: 64 });
    const slots = slotsOf(lengths);
    const steps = lengths.map(() => 0);
    for (let step = 1; slots.some(({ promptLeft }) => promptLeft > 0); step++) {
      simulated.step(slots.filter(({ promptLeft }) => promptLeft > 0));
      for (const { id, promptLeft } of slots) if (promptLeft === 0) steps[id] ||= step;
    }
    return steps;
  }

  // Prompts were prefilled in the order of their slots: one of 20 tokens waited for one of 8,000 in a lower slot.
  test("a short prompt does not wait for a long one that came before it", () => {
    expect(completed([8000, 20])[1]).toBeLessThanOrEqual(2);
  });

  // Each got half of the batches: the older one, too, was complete only shortly before the other.
  test("of two prompts of similar lengths, the older one does not wait", () => {
    expect(completed([6400, 4800])).toEqual([100, 175]);
  });

  test("every prompt takes at most twice the steps that it takes when prompts are served in order", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 8 }), (lengths) => {
        let before = 0;
        for (const [i, step] of completed(lengths).entries()) {
          before += Math.ceil((lengths[i] ?? 0) / 64);
          expect(step).toBeLessThanOrEqual(2 * before + 1);
        }
      }),
    );
  });

  // Each batch of answers took a turn of the prompts, too, so that only the shortest prompt was ever prefilled.
  test("short prompts that keep coming do not starve a long one", () => {
    const simulated = new Simulated(linear(30, 2), { maxTokens: 128 });
    const [answer, long, short] = [new Slot(0, 0), new Slot(1, 600), new Slot(2, 100)];
    for (let step = 0; step < 100 && long.promptLeft > 0; step++) {
      simulated.step([answer, long, short]);
      if (short.promptLeft === 0) short.promptLeft = 100;
    }
    expect(long.promptLeft).toBe(0);
  });
});

describe("with a unified KV cache, a prompt next to an answer", () => {
  /** The weights of a large model take most of the time of a step, and are read once for a batch. */
  const largeModel: Machine = (promptTokens, answers) => 100 + 2 * promptTokens + answers;
  /** All tokens of a tile pay for the answer's long context. */
  const longContexts: Machine = (promptTokens, answers) =>
    promptTokens === 0 ? 10 * answers : 2.4 * promptTokens + (answers > 0 ? 95 : 0);
  const growing: Machine = (promptTokens, answers, before) =>
    30 + 2.4 * promptTokens + (answers > 0 ? 5 + (promptTokens > 0 ? before / 200 : before / 4000) : 0);

  // Agents with prompts of 30,000 tokens: each chunk of 63 tokens next to an answer took 247 ms, and 165 ms in turns.
  test("is decoded together with it, or in turns with it, whichever is faster", () => {
    for (const machine of [longContexts, largeModel, growing]) {
      const simulated = new Simulated(machine, { unifiedKv: true, maxTokens: 128 });
      const [answer, prompt] = [new Slot(0, 0), new Slot(1, 40_000)];
      for (let step = 0; step < 8; step++) simulated.step([answer]);
      let ms = 0;
      /** Of the same chunks, each in the faster way. */
      let fastestMs = 0;
      while (prompt.promptLeft > 0) {
        const before = 40_000 - prompt.promptLeft;
        const { promptTokens, ms: took } = simulated.step([answer, prompt], { before });
        ms += took;
        if (promptTokens > 0)
          fastestMs += Math.min(
            machine(promptTokens, 1, before),
            machine(promptTokens, 0, before) + machine(0, 1, before),
          );
      }
      expect(ms).toBeLessThan(1.1 * fastestMs);
    }
  });

  // Where they were decoded together again, an answer that had waited for one chunk waited for another one, which it was in.
  test("does not hold it up for more than one chunk", () => {
    for (const machine of [longContexts, largeModel, growing]) {
      const simulated = new Simulated(machine, { unifiedKv: true });
      const slots = [new Slot(0, 0), new Slot(1, 20_000)];
      for (let step = 0; step < 8; step++) simulated.step(slots.slice(0, 1));
      const steps = simulated.prefill(slots);
      for (const [at, { answers }] of steps.entries())
        if (answers === 0) expect(steps[at + 1]?.promptTokens ?? 0).toBe(0);
    }
  });
});

describe("answers together or one by one", () => {
  /** Measured: Q8_0, one thread of a server's processor. */
  const slowBatches: Machine = (_, answers) => (answers === 1 ? 7 : answers < 8 ? 25 + 5 * answers : 48);
  const cheapBatches: Machine = (_, answers) => 20 + answers;

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
      const took = machine(0, count, 0);
      costs.observe({ answers: count, round: count, promptTokens: 0, draftTokens: 0 }, took);
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

  test("in turns, from the one that has waited the longest", () => {
    const simulated = new Simulated(slowBatches);
    const slots = slotsOf([0, 0, 0]);
    for (let step = 0; step < 30; step++) simulated.step(slots);
    const ids = Array.from({ length: 6 }, () => simulated.step(slots).plan.shares.map(({ slot: { id } }) => id));
    const [[first = 0] = []] = ids;
    expect(ids).toEqual([0, 1, 2, 3, 4, 5].map((at) => [(first + at) % 3]));
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
    for (let i = 0; i < 3; i++) costs.observe({ answers: 1, round: 1, promptTokens: 0, draftTokens: 0 }, 40);
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
          expect(run((_, count) => (count === 1 ? single : together), answers, tokens).ms).toBeLessThan(
            best * 1.06 + measuring,
          );
        },
      ),
    );
  });
});
