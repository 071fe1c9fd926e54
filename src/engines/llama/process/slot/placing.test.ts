import { expect, test } from "vitest";
import type { PromptCache } from "../prompt-cache/prompt-cache.ts";
import { selectSlot, type Seat } from "./slot.ts";
import type { Sequence } from "../prompt-cache/sequence.ts";

const states = { find: () => undefined } as unknown as PromptCache;
const base = { prompt: Array.from({ length: 200 }, (_, i) => i), adapters: "", usesCache: true } as const;

/** Slots of which each knows 300 tokens, so many of them of the prompt. */
function slots(known: readonly number[]): Seat[] {
  return known.map((tokens, id) => ({
    sequence: { id, length: 300, reusable: () => tokens } as unknown as Sequence,
    usedAt: 10 - id,
  }));
}

const taken = (known: readonly number[], oneMemory: boolean): number | undefined =>
  selectSlot(base, slots(known), { states, oneMemory, sharesBeginnings: true })?.slot.sequence.id;

// The slot that began with the same few tokens was left free, and so lay between those at work: a pass became two.
test("with a memory for each, the lowest free slot is taken, though it knows a few tokens", () => {
  expect(taken([1, 1, 1], false)).toBe(0);
  expect(taken([5, 1, 1], false)).toBe(0);
  expect(taken([1, 5, 1], false)).toBe(0);
});

test("a slot that knows much of the prompt, but more of something else, is left what it knows", () => {
  expect(taken([100, 0, 0], false)).toBe(1);
});

test("in one memory the slot is taken that was unused for the longest time, and none that can share what it knows", () => {
  expect(taken([1, 1, 1], true)).toBe(2);
  expect(taken([1, 1, 5], true)).toBe(1);
});

test("a conversation that goes on takes its own slot", () => {
  expect(taken([0, 199, 0], false)).toBe(1);
  expect(taken([0, 199, 0], true)).toBe(1);
});
