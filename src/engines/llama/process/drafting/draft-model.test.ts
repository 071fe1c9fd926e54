import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { seededRandom } from "../sampling/logits.ts";
import { BatchPlanner } from "../batch/batch-planner.ts";
import { TaskDrafts } from "../batch/drafter.ts";
import type { NativeContext } from "../c-api/native-context.ts";
import type { RunningSlot } from "../slot/slot.ts";
import { DraftModel, likeliest } from "./draft-model.ts";

const vocabularySize = 4096;
const prefill = { maxTokens: 512, maxGapMs: 250, maxBatchMs: 10_000 };

/** How long a decode of this number of tokens takes, in milliseconds. */
type Machine = (tokens: number) => number;

interface Simulation {
  /** Of the answering model and of the draft model. */
  readonly machine: Machine;
  readonly draftMachine: Machine;
  readonly answers: number;
  readonly unifiedKv?: boolean;
  /** Nothing is drafted. */
  readonly isPlain?: boolean;
}

/** A context without a model. Its decodes take virtual time, and after each token, the next one is the likeliest. */
function fakeContext(unifiedKv: boolean, decoded: (tokens: number) => void): NativeContext {
  const tokens: number[] = [];
  const decode = (): "done" => {
    decoded(tokens.length);
    return "done";
  };
  const context = {
    model: { isRecurrent: false, window: 0, needsCheckpoints: false, endsGeneration: () => false },
    unifiedKv,
    maxRollback: Infinity,
    maxOutputs: 64,
    batch: {
      clear: () => void (tokens.length = 0),
      add: (token: number) => tokens.push(token) - 1,
      get length() {
        return tokens.length;
      },
    },
    decode,
    decodeAsync: () => Promise.resolve(decode()),
    logits: (index: number) => {
      const logits = new Float32Array(vocabularySize);
      const token = tokens[index] ?? 0;
      logits[(token + 1) % vocabularySize] = 20;
      // A confidence that says nothing.
      for (let other = 2; other < 7; other++)
        logits[(token + other) % vocabularySize] = 20 - ((token * 7919) % 100) / 20;
      return logits;
    },
    truncate: () => true,
    clear: () => {},
  };
  return context as unknown as NativeContext;
}

/** Answers with a draft model, in virtual time. */
class Simulated {
  now = 0;
  readonly #options: Simulation;
  readonly #planner: BatchPlanner;
  readonly #model: DraftModel;
  readonly #random = seededRandom(1);

  constructor(options: Simulation) {
    const { machine, draftMachine, unifiedKv = false } = options;
    this.#options = options;
    const takes = (how: Machine) => (tokens: number) => void (this.now += how(tokens));
    this.#planner = new BatchPlanner({ context: fakeContext(unifiedKv, takes(machine)), prefill, speculation: "auto" });
    this.#planner.costs.observe({ answers: 0, round: 0, promptTokens: 64, draftTokens: 0 }, machine(64) * logitsFree);
    this.#model = new DraftModel({
      context: fakeContext(unifiedKv, takes(draftMachine)),
      newText: () => ({ read: (tokens) => tokens, translate: (draft) => draft }),
      maxTokens: 15,
      batchSize: 512,
      maxGapMs: 250,
      assumedCost: 0.05,
      always: false,
      log: (line) => {
        throw new Error(line);
      },
      clock: () => this.now,
    });
  }

  /**
   * Generates answers of `length` tokens, of which the draft model predicts a share of `rate`. Returns the time in milliseconds, and that of
   * answers without drafts.
   */
  async answers(rate: number, length = 100): Promise<{ readonly ms: number; readonly plainMs: number }> {
    const { machine, answers } = this.#options;
    const started = this.now;
    const tasks = Array.from({ length: answers }, (_, id) => this.taskOf(id, length));
    for (;;) {
      const slots = tasks.filter(({ task }) => task.answer.counts.generated < length) as unknown as RunningSlot[];
      if (slots.length === 0) break;
      if (!this.#options.isPlain) await this.#model.draft(slots, this.#planner);
      const batch = this.#planner.next(slots);
      const ms = machine(batch.answers + batch.draftTokens);
      this.now += ms;
      this.#planner.observe(batch, ms);
      for (const { task, chunk } of batch.shares) {
        const { tokens, drafts, generate } = task as unknown as ReturnType<Simulated["taskOf"]>["task"];
        drafts.record(chunk.tokens.length - 1, 0);
        for (let at = 0; ; at++) {
          const expected = ((tokens.at(-1) ?? 0) + 1) % vocabularySize;
          generate(this.#random() < rate ? expected : Math.floor(this.#random() * vocabularySize));
          if (chunk.tokens[at + 1] !== tokens.at(-1)) break;
        }
      }
    }
    const plain = Math.min(machine(answers), answers * machine(1));
    return { ms: this.now - started, plainMs: length * plain };
  }

  /** What the scheduler's slot is for the planner and the draft model. */
  taskOf(id: number, length: number) {
    const prompt = Array.from({ length: 20 }, () => Math.floor(this.#random() * vocabularySize));
    const tokens = [...prompt];
    const drafts = new TaskDrafts({ prompt: prompt.length, isLast: () => false });
    const task = {
      tokens,
      drafts,
      promptLeft: 0,
      answer: { counts: { generated: 0 } },
      get maxDraft() {
        return length - this.answer.counts.generated - 1;
      },
      draft: (max: number) => drafts.next(tokens, Math.min(max, task.maxDraft)),
      answerChunk: (draft: readonly number[] = []) => ({
        tokens: [...tokens.slice(-1), ...draft],
        outputs: 1 + draft.length,
      }),
      generate: (token: number) => {
        tokens.push(token);
        task.answer.counts.generated++;
      },
    };
    return { id, sequence: { id, nextPosition: 0 }, task };
  }
}

/** Of the tokens of a prompt, no logits are computed. */
const logitsFree = 0.6;

/** As measured with a model of 135 million parameters, Q8_0, on one thread of an AMD EPYC. */
const measured: Machine = (tokens) => {
  const points = [
    [1, 6.5],
    [2, 26],
    [4, 37],
    [8, 49],
    [16, 58],
    [32, 113],
    [64, 223],
  ] as const;
  const at = points.findIndex(([count]) => count >= tokens);
  const [count, ms] = points[at] ?? [64, 223];
  const [fewer, fewerMs] = points[at - 1] ?? [count - 1, ms];
  return fewerMs + ((ms - fewerMs) * (tokens - fewer)) / (count - fewer);
};
const small: Machine = (tokens) => 0.2 * tokens + 0.1;
/** Decodes that mostly read the weights. */
const reading: Machine = (tokens) => 50 + tokens;
const readingSmall: Machine = (tokens) => 3 + 0.1 * tokens;

describe("a draft model", () => {
  test.each([
    ["one answer", { machine: measured, draftMachine: small, answers: 1, unifiedKv: true }, 1.4],
    ["four answers", { machine: measured, draftMachine: small, answers: 4, unifiedKv: true }, 1.4],
    ["eight answers", { machine: measured, draftMachine: small, answers: 8 }, 1.5],
    [
      "an answer where weights are read",
      { machine: reading, draftMachine: readingSmall, answers: 1, unifiedKv: true },
      3,
    ],
  ] as const)("that agrees soon makes %s faster", async (_, options, gain) => {
    const simulated = new Simulated(options);
    for (let round = 0; round < 8; round++) {
      const { ms, plainMs } = await simulated.answers(1);
      // At first, costs and acceptance rates are learned.
      expect(plainMs / ms).toBeGreaterThan(round < 7 ? 0.85 : gain);
    }
  });

  // Each answer whose drafts did not pay doubled the time to the next attempt: after one text, no answer of fewer than 2,048 tokens had drafts.
  test("drafts again when it agrees after texts for which it did not", async () => {
    for (const options of [
      { machine: measured, draftMachine: small, answers: 4, unifiedKv: true },
      { machine: measured, draftMachine: small, answers: 8 },
      { machine: reading, draftMachine: readingSmall, answers: 1 },
    ]) {
      const simulated = new Simulated(options);
      for (let round = 0; round < 6; round++) await simulated.answers(0);
      for (let round = 0; round < 2; round++) await simulated.answers(1);
      const { ms, plainMs } = await simulated.answers(1);
      expect(plainMs / ms).toBeGreaterThan(1.4);
    }
  });

  test("on every machine, costs little where it disagrees", async () => {
    const losses: number[] = [];
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          // Milliseconds of a decode with one token, and of each further one; those of the draft model as a share.
          first: fc.integer({ min: 5, max: 100 }),
          further: fc.double({ min: 0.02, max: 1, noNaN: true }),
          share: fc.double({ min: 0.01, max: 0.5, noNaN: true }),
          answers: fc.integer({ min: 1, max: 8 }),
          rate: fc.double({ min: 0, max: 0.1, noNaN: true }),
        }),
        async ({ first, further, share, answers, rate }) => {
          const machine: Machine = (tokens) => first * (1 + further * (tokens - 1));
          const draftMachine: Machine = (tokens) => share * machine(tokens);
          const [ms = 0, plainMs = 0] = await Promise.all(
            [false, true].map(async (isPlain) => {
              const options = { machine, draftMachine, answers, unifiedKv: answers <= 4, isPlain };
              const simulated = new Simulated(options);
              // Before that, costs and acceptance rates are learned.
              await simulated.answers(rate, 100);
              return (await simulated.answers(rate, 1200)).ms;
            }),
          );
          expect(ms).toBeLessThan(1.08 * plainMs);
          losses.push(ms / plainMs - 1);
        },
      ),
      { numRuns: 60, endOnFailure: true },
    );
    expect(losses.reduce((sum, loss) => sum + loss, 0) / losses.length).toBeLessThan(0.03);
  });

  test("is as sure of its likeliest token as the others are less likely", () => {
    const logits = fc.float32Array({ min: -30, max: 30, noNaN: true, minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(logits, (own) => {
        const { token, confidence } = likeliest(own);
        const largest = Math.max(...own);
        expect(own[token]).toBe(largest);
        const near = [...own].filter((logit) => logit > largest - 5);
        expect(1 / confidence).toBeCloseTo(
          near.reduce((sum, logit) => sum + Math.exp(logit - largest), 0),
          6,
        );
      }),
    );
  });
});
