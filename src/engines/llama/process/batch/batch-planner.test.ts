import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { NativeContext } from "../c-api/native-context.ts";
import type { Sequence } from "../prompt-cache/sequence.ts";
import type { RunningSlot } from "../slot/slot.ts";
import type { TokenChunk } from "../slot/image-rows.ts";
import type { Task } from "../slot/task.ts";
import { BatchPlanner, type Batch } from "./batch-planner.ts";

const batchSize = 128;
const longAnswer = 1000;
const limits = { maxTokens: batchSize, maxGapMs: 250, maxBatchMs: 10_000 };

/** A slot with a number of prompt tokens left; with 0 it answers, and its tokens are counted. */
class FakeSlot {
  readonly sequence: Sequence;
  readonly task: Task;
  answered = 0;
  promptLeft: number;

  constructor(id: number, promptLeft: number) {
    this.promptLeft = promptLeft;
    // An answer that did not begin here has been running for long.
    if (promptLeft === 0) this.answered = longAnswer;
    this.sequence = { id, length: 0 } as Sequence;
    const left = (): number => this.promptLeft;
    const generated = (): number => this.answered;
    this.task = {
      order: id,
      get promptLeft() {
        return left();
      },
      answer: {
        get counts() {
          return { generated: generated() };
        },
      },
      promptChunk: (max: number): TokenChunk => {
        const count = Math.min(max, this.promptLeft);
        return { tokens: Array.from({ length: count }, () => 1), outputs: count === this.promptLeft ? 1 : 0 };
      },
      answerChunk: (): TokenChunk => ({ tokens: [1], outputs: 1 }),
    } as unknown as Task;
  }
}

function plannerOf(unifiedKv: boolean): BatchPlanner {
  let length = 0;
  const batch = {
    clear: () => (length = 0),
    add: () => length++,
    get length() {
      return length;
    },
  };
  const context = { unifiedKv, maxOutputs: 64, batch } as unknown as NativeContext;
  return new BatchPlanner({ context, prefill: limits, speculation: "off" });
}

function next(planner: BatchPlanner, slots: readonly FakeSlot[]): Batch {
  return planner.next(slots as unknown as readonly RunningSlot[]);
}

function decoded({ shares }: Batch): void {
  for (const { slot, chunk } of shares) {
    const fake = slot as unknown as FakeSlot;
    if (fake.promptLeft === 0) fake.answered++;
    else fake.promptLeft -= chunk.tokens.length;
  }
}

/** A planner that has measured 2 ms for each token of a prompt. */
function measuredPlanner(unifiedKv: boolean): BatchPlanner {
  const planner = plannerOf(unifiedKv);
  planner.observe(next(planner, slotsOf([64])), 128);
  return planner;
}

/** Decodes batches until all prompts are prefilled, on a machine where a decode has a fixed cost and a cost per token. */
function run(slots: readonly FakeSlot[], unifiedKv: boolean): Batch[] {
  const planner = plannerOf(unifiedKv);
  const batches: Batch[] = [];
  while (slots.some(({ promptLeft }) => promptLeft > 0)) {
    const batch = next(planner, slots);
    batches.push(batch);
    expect(batches.length).toBeLessThan(10_000);
    planner.observe(batch, 30 + 2 * (batch.promptTokens + batch.answers));
    decoded(batch);
  }
  return batches;
}

const lengths = fc.array(fc.integer({ min: 0, max: 600 }), { minLength: 1, maxLength: 12 });
const slotsOf = (prompts: readonly number[]): FakeSlot[] => prompts.map((left, id) => new FakeSlot(id, left));

test("without a unified KV cache, a batch contains chunks of the same length: one token if there are answers", () => {
  fc.assert(
    fc.property(lengths, (prompts) => {
      for (const { shares, answers } of run(slotsOf(prompts), false)) {
        const [length, ...others] = new Set(shares.map(({ chunk }) => chunk.tokens.length));
        expect(others).toEqual([]);
        if (answers > 0) expect(length).toBe(1);
      }
    }),
  );
});

test("with a unified KV cache, answers continue in each batch with prompts", () => {
  fc.assert(
    fc.property(lengths, (prompts) => {
      for (const { answers, promptTokens } of run(slotsOf(prompts), true)) {
        expect(promptTokens).toBeGreaterThan(0);
        expect(answers).toBeGreaterThanOrEqual(prompts.filter((left) => left === 0).length);
      }
    }),
  );
});

test.each([true, false])("short prompts that arrive together are prefilled in one batch (unified: %s)", (unifiedKv) => {
  // Sixteen prompts of 48 tokens took 30 ms of CPU each longer than in llama-server: one batch for each, with answers between them.
  const planner = measuredPlanner(unifiedKv);
  expect(next(planner, slotsOf([32, 32, 32, 32])).promptTokens).toBe(batchSize);
  // Others wait for the tokens of an answer, and for a long prompt.
  expect(next(planner, slotsOf([64, 64, 0])).promptTokens).toBeLessThan(batchSize);
  expect(next(planner, slotsOf([600, 32, 32, 32])).isAbortable).toBe(false);
});

test.each([true, false])("prompts that only wait for each other have no short chunks (unified: %s)", (unifiedKv) => {
  // Four prompts of 500 tokens were processed in chunks of 64 and rests of 52: as with answers to wait for, and 12 % slower than in llama-server.
  const planner = plannerOf(unifiedKv);
  // A chunk of 64 takes as long as a gap may.
  planner.observe(next(planner, slotsOf([64])), 256);
  const slots = slotsOf([500, 500, 500, 500]);
  const sizes: number[] = [];
  while (slots.some(({ promptLeft }) => promptLeft > 0)) {
    const batch = next(
      planner,
      slots.filter(({ promptLeft }) => promptLeft > 0),
    );
    sizes.push(batch.promptTokens);
    decoded(batch);
  }
  expect(Math.min(...sizes)).toBeGreaterThanOrEqual(64);
  expect(next(planner, slotsOf([500, 0])).promptTokens).toBeLessThanOrEqual(64);
});

// A batch of whole tiles had one prompt of 48 tokens where two fit into the gap: answers that begin one after another end so, and each
// step with some of them costs as much as one with all.
test("beside an answer, a batch has as many short prompts as fit into the longest gap", () => {
  const planner = measuredPlanner(false);
  // Of 2 ms for each token.
  expect(next(planner, slotsOf([0, 48, 48, 48])).promptTokens).toBe(96);
  expect(next(measuredPlanner(false), slotsOf([0, 300, 300])).promptTokens).toBe(64);
});

// Sixteen requests at the same time had one prompt in each batch, and a step of the answers so far after it.
test("short prompts do not wait for answers that have just begun, for one batch", () => {
  const planner = measuredPlanner(false);
  const slots = slotsOf([0, 32, 32, 32, 32, 32]);
  for (const slot of slots) slot.answered = 0;
  const batches = Array.from({ length: 4 }, () => {
    const batch = next(planner, slots);
    decoded(batch);
    return [batch.promptTokens, batch.answers];
  });
  expect(batches).toEqual([
    [128, 0],
    [0, 5],
    [32, 0],
    [0, 6],
  ]);
  const [first] = slots;
  if (first) first.answered = longAnswer;
  expect(next(planner, [...slots, new FakeSlot(6, 100), new FakeSlot(7, 100)]).promptTokens).toBe(100);
});

// Sixteen requests of 48 tokens had two or three steps of some answers between their prompts: with batches of 512 tokens, 4 % of the time of
// answers of 48 tokens.
test("answers that have just begun wait for several batches of short prompts, four gaps in all", () => {
  const planner = measuredPlanner(false);
  const slots = slotsOf(Array.from({ length: 24 }, () => 32));
  const batches = Array.from({ length: 8 }, () => {
    const batch = next(planner, slots);
    decoded(batch);
    planner.observe(batch, 2 * (batch.promptTokens + batch.answers));
    return [batch.promptTokens, batch.answers];
  });
  // Nothing waits for the first one. The others would take 1,024 ms together with a fourth one of 128 tokens.
  const burst = [
    [128, 0],
    [128, 0],
    [128, 0],
    [128, 0],
    [64, 0],
  ];
  expect(batches).toEqual([...burst, [0, 18], [128, 0], [64, 0]]);
});

// Eight prompts, three of which were a token longer, had a step of these three tokens.
test("without a unified KV cache, the last token of a prompt is decoded together with answers", () => {
  const planner = measuredPlanner(false);
  const slots = slotsOf([16, 17, 16, 17]);
  const batches = Array.from({ length: 2 }, () => {
    const batch = next(planner, slots);
    decoded(batch);
    return [batch.promptTokens, batch.answers];
  });
  expect(batches).toEqual([
    [64, 0],
    [2, 2],
  ]);
});

test("a prompt joins a batch that has just started only if both are short and fit into a batch", () => {
  const planner = measuredPlanner(true);
  const joins = (running: number, arrived: number): boolean => {
    const [slot, other] = slotsOf([running, arrived]);
    if (!slot || !other) throw new Error("There are two slots.");
    return planner.joins(other.task, next(planner, [slot]));
  };
  expect([joins(48, 48), joins(100, 28), joins(100, 29), joins(48, 200), joins(300, 10)]).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});

test("a batch is never empty or too large, and its sequences ascend", () => {
  fc.assert(
    fc.property(lengths, fc.boolean(), (prompts, unifiedKv) => {
      for (const { shares } of run(slotsOf(prompts), unifiedKv)) {
        const tokens = shares.reduce((sum, { chunk }) => sum + chunk.tokens.length, 0);
        expect(tokens).toBeGreaterThan(0);
        expect(tokens).toBeLessThanOrEqual(batchSize);
        const ids = shares.map(({ slot }) => slot.sequence.id);
        expect(ids).toEqual(ids.toSorted((one, other) => one - other));
      }
    }),
  );
});

test("between two batches of prompts alone, each waiting answer gets a token", () => {
  fc.assert(
    fc.property(lengths, (prompts) => {
      const slots = slotsOf(prompts);
      const answering = slots.filter(({ promptLeft }) => promptLeft === 0);
      const ofPrompts = run(slots, false).filter(({ answers }) => answers === 0).length;
      for (const { answered } of answering) expect(answered - longAnswer).toBeGreaterThanOrEqual(ofPrompts - 1);
    }),
  );
});

// Each batch of answers took a turn of the prompts, too, so that only the shortest prompt was ever prefilled.
test("short prompts that keep coming do not starve a long one", () => {
  const planner = plannerOf(false);
  const long = new FakeSlot(1, 600);
  const short = new FakeSlot(2, 200);
  const slots = [new FakeSlot(0, 0), long, short];
  for (let step = 0; step < 200 && long.promptLeft > 0; step++) {
    const batch = next(planner, slots);
    decoded(batch);
    planner.observe(batch, 30 + 2 * batch.promptTokens);
    if (short.promptLeft === 0) short.promptLeft = 200;
  }
  expect(long.promptLeft).toBe(0);
});

test("only a prompt that nothing waits for is alone, and not while it makes up for an interruption", () => {
  const planner = plannerOf(true);
  const prompt = new FakeSlot(0, 5000);
  const planned = (slots: readonly FakeSlot[], othersWait = false): boolean => {
    const batch = planner.next(slots as unknown as readonly RunningSlot[], othersWait);
    planner.observe(batch, 3 * batch.promptTokens);
    decoded(batch);
    return batch.isAbortable;
  };
  expect(planned([prompt])).toBe(true);
  expect(planned([prompt], true)).toBe(false);
  expect(planned([prompt, new FakeSlot(1, 0)])).toBe(false);
  expect(planned([prompt, new FakeSlot(1, 300)])).toBe(false);
  planner.interrupted();
  expect([planned([prompt]), planned([prompt]), planned([prompt])]).toEqual([false, false, true]);
});

// A rest of 48 tokens took longer than 128 tokens.
test("a prompt is not left with a short rest", () => {
  fc.assert(
    fc.property(fc.integer({ min: 128, max: 2000 }), (length) => {
      for (const { promptTokens } of run([new FakeSlot(0, length)], true))
        expect(promptTokens).toBeGreaterThanOrEqual(64);
    }),
  );
});

describe("with a unified KV cache, a prompt next to an answer", () => {
  /** The duration of a batch in milliseconds. */
  type Machine = (promptTokens: number, answers: number) => number;
  /** The weights of a large model take most of the time of a step, and are read once for a batch. */
  const largeModel: Machine = (promptTokens, answers) => 100 + 2 * promptTokens + answers;
  /** All tokens of a tile pay for the answer's long context. */
  const longContexts: Machine = (promptTokens, answers) =>
    promptTokens === 0 ? 10 * answers : 2.4 * promptTokens + (answers > 0 ? 95 : 0);

  function prefill(machineAfter: (prefilled: number) => Machine) {
    const planner = plannerOf(true);
    const length = 40_000;
    const slots = [new FakeSlot(0, 0), new FakeSlot(1, length)] as const;
    const answer = slots[0];
    const batches: Batch[] = [];
    let ms = 0;
    /** Of the same chunks, each in the faster way. */
    let fastestMs = 0;
    const decode = (of: readonly FakeSlot[]): void => {
      const batch = next(planner, of);
      const { promptTokens, answers } = batch;
      const machine = machineAfter(length - slots[1].promptLeft);
      const took = machine(promptTokens, answers);
      if (promptTokens > 0) fastestMs += Math.min(machine(promptTokens, 1), machine(promptTokens, 0) + machine(0, 1));
      planner.observe(batch, took);
      decoded(batch);
      batches.push(batch);
      ms += took;
    };
    for (let step = 0; step < 8; step++) decode([answer]);
    while (slots[1].promptLeft > 0) decode(slots);
    return { ms, fastestMs, batches };
  }

  test("is decoded together with it, or in turns with it, whichever is faster", () => {
    // Agents with prompts of 30,000 tokens: each chunk of 63 tokens next to an answer took 247 ms, and 165 ms in turns.
    const growing = (prefilled: number): Machine => {
      const attention = prefilled / 200;
      return (promptTokens, answers) =>
        30 + 2.4 * promptTokens + (answers > 0 ? 5 + (promptTokens > 0 ? attention : attention / 20) : 0);
    };
    for (const machineAfter of [() => longContexts, () => largeModel, growing]) {
      const { ms, fastestMs } = prefill(machineAfter);
      expect(ms).toBeLessThan(1.1 * fastestMs);
    }
  });

  test("does not hold it up for more than one chunk", () => {
    for (const machine of [longContexts, largeModel]) {
      const { batches } = prefill(() => machine);
      for (const [at, { answers }] of batches.entries())
        expect(answers + (batches[at + 1]?.answers ?? 1)).toBeGreaterThan(0);
    }
  });
});
