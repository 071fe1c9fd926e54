import fc from "fast-check";
import { expect, test } from "vitest";
import { PromptTurns } from "./batch-planner.ts";

interface Prompt {
  readonly order: number;
  readonly choice: { promptLeft: number };
}

/** The pass in which each prompt was read to its end, where a pass reads so many tokens of the first one. */
function passes(lengths: readonly number[], tokens: number): number[] {
  const turns = new PromptTurns();
  const prompts: Prompt[] = lengths.map((promptLeft, order) => ({ order, choice: { promptLeft } }));
  const ended = lengths.map(() => 0);
  for (let pass = 1; prompts.some(({ choice }) => choice.promptLeft > 0); pass++) {
    const [first] = turns.next(prompts.filter(({ choice }) => choice.promptLeft > 0));
    if (!first) break;
    first.choice.promptLeft = Math.max(0, first.choice.promptLeft - tokens);
    if (first.choice.promptLeft === 0) ended[first.order] = pass;
  }
  return ended;
}

// Prompts were read in the order of their slots: one of 20 tokens waited for one of 8,000 in a lower slot.
test("a short prompt does not wait for a long one that came before it", () => {
  const [, short] = passes([8000, 20], 50);
  expect(short).toBeLessThanOrEqual(2);
});

test("every prompt is read in at most twice the passes that it takes when the first to come is the first served", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 8 }), (lengths) => {
      let before = 0;
      for (const [i, pass] of passes(lengths, 50).entries()) {
        before += Math.ceil((lengths[i] ?? 0) / 50);
        expect(pass).toBeLessThanOrEqual(2 * before);
      }
    }),
  );
});
