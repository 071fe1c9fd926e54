import { expect, test } from "vitest";
import type { PromptCache } from "../prompt-cache/prompt-cache.ts";
import type { Sequence } from "../prompt-cache/sequence.ts";
import { freeCells, selectSlot, Slot } from "./slot.ts";
import type { Task } from "./task.ts";

const cacheThat = (saves: boolean): PromptCache =>
  ({ find: () => undefined, canSave: () => saves }) as unknown as PromptCache;
const task = { prompt: Array.from({ length: 200 }, (_, i) => i), adapters: "", usesCache: true } as const;

/**
 * Slots with 300 tokens each, `promptLength` of them of a prompt, of which some are the start of the task's prompt. The last slot is the one
 * that was used longest ago.
 */
function slotsWith(reusable: readonly number[], promptLength = 220): Slot[] {
  return reusable.map((tokens, id) => {
    const slot = new Slot({ id, length: 300, promptLength, reusable: () => tokens } as unknown as Sequence);
    slot.lastUsed = 10 - id;
    return slot;
  });
}

const selected = (
  reusable: readonly number[],
  unifiedKv: boolean,
  saves = true,
  promptLength?: number,
): number | undefined =>
  selectSlot(task, slotsWith(reusable, promptLength), {
    promptCache: cacheThat(saves),
    unifiedKv,
    sharesPrefixes: true,
  })?.slot.id;

// The slot with the same first tokens was left free, and so was between those at work: a decode became two.
test("without a unified KV cache, the lowest free slot is selected, even if it shares a few tokens", () => {
  expect(selected([1, 1, 1], false)).toBe(0);
  expect(selected([5, 1, 1], false)).toBe(0);
  expect(selected([1, 5, 1], false)).toBe(0);
  // A short prompt was taken for the beginning of the conversation, whatever it had in common with it.
  expect(selected([1, 5, 1], false, true, 48)).toBe(0);
  expect(selected([1, 24, 1], false, true, 48)).toBe(1);
});

test("a slot that has a part of the prompt, but more of another conversation, keeps its tokens", () => {
  expect(selected([100, 0, 0], false)).toBe(1);
});

test("with a unified KV cache, the slot that was used longest ago is selected, except the one whose tokens are shared", () => {
  expect(selected([1, 1, 1], true)).toBe(2);
  expect(selected([1, 1, 5], true)).toBe(1);
});

test("a continued conversation takes its own slot", () => {
  expect(selected([0, 199, 0], false)).toBe(1);
  expect(selected([0, 199, 0], true)).toBe(1);
});

// Agents with the same system prompt took each other's slots, and a retry took its own: the other branch was processed again.
test("a slot that has most of the prompt, but more of its own, keeps its tokens, unless fewer would be lost in it", () => {
  expect(selected([150, 0, 0], true)).toBe(2);
  expect(selected([150, 0, 0], false)).toBe(1);
  expect(selected([150, 0, 0], true, false)).toBe(0);
  expect(selected([150], true)).toBe(0);
});

/** Slots that record what is done with them. A slot without `order` is idle. */
function recordingSlots(all: readonly { order?: number; usedAt?: number; length?: number; discardsCache?: boolean }[]) {
  const done: string[] = [];
  const slots = all.map(({ order, usedAt = 0, length = 10, discardsCache = false }, id) => {
    const slot = new Slot({ id, length, clear: () => done.push(`clear ${id}`) } as unknown as Sequence);
    slot.lastUsed = usedAt;
    const answer = { finish: (reason: string) => done.push(`${reason} ${id}`) };
    const preempt = (): unknown => done.push(`preempt ${id}`);
    if (order !== undefined) slot.assign({ order, discardsCache, answer, preempt } as unknown as Task);
    return slot;
  });
  const preempted = freeCells(slots, { save: ({ id }: Sequence) => void done.push(`save ${id}`) }, 8);
  return { slots, done, preempted };
}

test("the idle slot that was used longest ago is cleared first, after it was saved", () => {
  const { done, preempted } = recordingSlots([{ order: 1 }, { usedAt: 7 }, { usedAt: 3 }, { usedAt: 1, length: 0 }]);
  expect(done).toEqual(["save 2", "clear 2"]);
  expect(preempted).toBeUndefined();
});

test("where no slot is idle, the newest task is preempted", () => {
  const { done, preempted, slots } = recordingSlots([{ order: 2 }, { order: 5 }, { order: 3 }]);
  expect(done).toEqual(["save 1", "preempt 1"]);
  expect(preempted?.order).toBe(5);
  expect(slots[1]?.task).toBeUndefined();
});

// A copy of it was saved, which the task itself could not use and other requests could.
test("the tokens of a preempted task are not saved if the request declines the cache", () => {
  expect(recordingSlots([{ order: 2 }, { order: 5, discardsCache: true }]).done).toEqual(["preempt 1"]);
});

test("the only running task ends", () => {
  expect(recordingSlots([{ order: 2 }]).done).toEqual(["length 0"]);
});

test("a slot follows its task from prefill to idle, with a debug line for each transition", () => {
  const lines: string[] = [];
  const slot = new Slot({ id: 3 } as Sequence, (line) => lines.push(line));
  const request = { canContinue: true };
  const running = { id: "7.0", request, finished: false, promptLeft: 5 };
  slot.assign(running as unknown as Task);
  slot.update();
  expect([slot.phase, slot.isRunning()]).toEqual(["prefill", true]);
  running.promptLeft = 0;
  slot.update();
  request.canContinue = false;
  slot.update();
  expect([slot.phase, slot.isRunning()]).toEqual(["paused", false]);
  request.canContinue = true;
  slot.update();
  running.finished = true;
  slot.update();
  expect([slot.phase, slot.isRunning()]).toEqual(["finished", false]);
  slot.release("finished", 12);
  expect([slot.phase, slot.task, slot.lastUsed]).toEqual(["idle", undefined, 12]);
  expect(lines).toEqual([
    "slot 3: idle → prefill (task 7.0, assigned)",
    "slot 3: prefill → decode (task 7.0, prompt is decoded)",
    "slot 3: decode → paused (task 7.0, the client is behind)",
    "slot 3: paused → decode (task 7.0, prompt is decoded)",
    "slot 3: decode → finished (task 7.0, finished)",
    "slot 3: finished → idle (task 7.0, finished)",
  ]);
});
