import { expect, test } from "vitest";
import { type Slot, freeCells } from "./slot.ts";
import type { Sequence } from "../prompt-cache/sequence.ts";

/** Slots that note what is done with them: idle ones (no `order`), and those at work. */
function slotsOf(all: readonly { order?: number; usedAt?: number; length?: number; forgets?: boolean }[]) {
  const done: string[] = [];
  const slots = all.map(({ order, usedAt = 0, length = 10, forgets = false }, id) => {
    const choice = { forgets, cut: () => done.push(`cut ${id}`), giveBack: () => done.push(`give back ${id}`) };
    const sequence = { id, length, clear: () => done.push(`clear ${id}`) };
    return { sequence, usedAt, job: order === undefined ? undefined : { order, choice } } as unknown as Slot;
  });
  const states = { save: ({ id }: Sequence) => void done.push(`keep ${id}`) };
  return { slots, done, made: freeCells(slots, states) };
}

test("the idle slot that was unused for the longest time goes first, and is kept beside the slots", () => {
  const { done, made } = slotsOf([{ order: 1 }, { usedAt: 7 }, { usedAt: 3 }, { usedAt: 1, length: 0 }]);
  expect(done).toEqual(["keep 2", "clear 2"]);
  expect(made).toBeUndefined();
});

test("where none is idle, the choice that came last gives its part back", () => {
  const { done, made, slots } = slotsOf([{ order: 2 }, { order: 5 }, { order: 3 }]);
  expect(done).toEqual(["keep 1", "give back 1"]);
  expect(made?.order).toBe(5);
  expect(slots[1]?.job).toBeUndefined();
});

// A copy was kept of it, which it could not use itself and others could.
test("what must not be kept for others is not, when it gives its part back", () => {
  expect(slotsOf([{ order: 2 }, { order: 5, forgets: true }]).done).toEqual(["give back 1"]);
});

test("the only choice ends with what it has", () => {
  expect(slotsOf([{ order: 2 }]).done).toEqual(["cut 0"]);
});
