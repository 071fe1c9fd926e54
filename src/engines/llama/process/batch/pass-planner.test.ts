import fc from "fast-check";
import { expect, test } from "vitest";
import type { NativeContext } from "../c-api/native-context.ts";
import type { Choice, Piece } from "../slot/task.ts";
import { PassPlanner, type Member, type Pass } from "./batch-planner.ts";
import type { RequestRun } from "../slot/task-group.ts";
import type { Sequence } from "../prompt-cache/sequence.ts";

const batchSize = 128;

/** Of each sequence, how many tokens of its prompt are left; 0: it answers. What it answered is counted. */
class Answer {
  readonly sequence: Sequence;
  readonly choice: Choice;
  readonly request = {} as RequestRun;
  readonly order: number;
  answered = 0;
  promptLeft: number;

  constructor(id: number, promptLeft: number) {
    this.order = id;
    this.promptLeft = promptLeft;
    this.sequence = { id, length: 0 } as Sequence;
    const left = (): number => this.promptLeft;
    this.choice = {
      get promptLeft() {
        return left();
      },
      piece: (most: number): Piece => {
        const count = Math.min(most, this.promptLeft);
        return { tokens: Array.from({ length: count }, () => 1), outputs: count === this.promptLeft ? 1 : 0 };
      },
      answerPiece: (): Piece => ({ tokens: [1], outputs: 1 }),
    } as unknown as Choice;
  }
}

function planner(unifiedKv: boolean, slots: number): PassPlanner {
  let length = 0;
  const batch = {
    clear: () => (length = 0),
    add: () => length++,
    get length() {
      return length;
    },
  };
  const context = { unifiedKv, maxOutputs: 64, batch } as unknown as NativeContext;
  return new PassPlanner({ context, batchSize, slots, speculation: undefined });
}

/** Runs passes until every prompt is read, on a machine where a pass has a fixed price, and each token its own. */
function run(members: readonly Answer[], unifiedKv: boolean): Pass<Member & Answer>[] {
  const plan = planner(unifiedKv, members.length);
  const passes: Pass<Answer>[] = [];
  while (members.some(({ promptLeft }) => promptLeft > 0)) {
    const pass = plan.next(members);
    passes.push(pass);
    expect(passes.length).toBeLessThan(10_000);
    const ms = 30 + 2 * (pass.prompted + pass.answers);
    plan.observe(pass, ms);
    for (const { who, piece } of pass.shares) {
      if (who.promptLeft === 0) who.answered++;
      else who.promptLeft -= piece.tokens.length;
    }
    plan.observeStep(pass, ms);
  }
  return passes;
}

const lengths = fc.array(fc.integer({ min: 0, max: 600 }), { minLength: 1, maxLength: 12 });

test("where each sequence has its own memory, a pass is of answers, or of pieces of one length", () => {
  fc.assert(
    fc.property(lengths, (prompts) => {
      for (const { shares, answers, prompted } of run(
        prompts.map((left, id) => new Answer(id, left)),
        false,
      )) {
        expect(answers > 0 && prompted > 0).toBe(false);
        expect(new Set(shares.map(({ piece }) => piece.tokens.length)).size).toBe(1);
      }
    }),
  );
});

test("where they share one, answers go on in each pass beside prompts", () => {
  fc.assert(
    fc.property(lengths, (prompts) => {
      const members = prompts.map((left, id) => new Answer(id, left));
      for (const { answers, prompted } of run(members, true)) {
        expect(prompted).toBeGreaterThan(0);
        expect(answers).toBeGreaterThanOrEqual(prompts.filter((left) => left === 0).length);
      }
    }),
  );
});

test("a pass is never empty, fits the batch, and its sequences ascend", () => {
  fc.assert(
    fc.property(lengths, fc.boolean(), (prompts, unifiedKv) => {
      for (const { shares } of run(
        prompts.map((left, id) => new Answer(id, left)),
        unifiedKv,
      )) {
        const tokens = shares.reduce((sum, { piece }) => sum + piece.tokens.length, 0);
        expect(tokens).toBeGreaterThan(0);
        expect(tokens).toBeLessThanOrEqual(batchSize);
        const ids = shares.map(({ who }) => who.sequence.id);
        expect(ids).toEqual(ids.toSorted((one, other) => one - other));
      }
    }),
  );
});

test("between two passes of prompts, each answer that waits has a token", () => {
  fc.assert(
    fc.property(lengths, (prompts) => {
      const members = prompts.map((left, id) => new Answer(id, left));
      const answering = members.filter(({ promptLeft }) => promptLeft === 0);
      const passes = run(members, false);
      const ofPrompts = passes.filter(({ prompted }) => prompted > 0).length;
      for (const { answered } of answering) expect(answered).toBeGreaterThanOrEqual(ofPrompts - 1);
    }),
  );
});

// Each pass of answers between took a turn of the prompts', too, so that only the shortest one was ever read.
test("short prompts that keep coming do not hold up a long one", () => {
  const plan = planner(false, 3);
  const long = new Answer(1, 600);
  const short = new Answer(2, 200);
  const members = [new Answer(0, 0), long, short];
  for (let pass = 0; pass < 200 && long.promptLeft > 0; pass++) {
    const filled = plan.next(members);
    for (const { who, piece } of filled.shares) if (who.promptLeft > 0) who.promptLeft -= piece.tokens.length;
    plan.observe(filled, 30 + 2 * filled.prompted);
    if (short.promptLeft === 0) short.promptLeft = 200;
  }
  expect(long.promptLeft).toBe(0);
});
