import { expect, test } from "vitest";
import type { QueueTier } from "../../../../wire/core/request.ts";
import type { Slot } from "./slot.ts";
import type { Task } from "./task.ts";
import { TaskQueue } from "./task-queue.ts";

const taskOf = (tier: QueueTier): Task => ({ tier, prompt: [1], usesCache: false, owner: "" }) as unknown as Task;
const slotsOf = (count: number): Slot[] => Array.from({ length: count }, () => ({ task: null }) as unknown as Slot);

/** Gives slots to what waits until nothing more gets one; returns how many of each tier run. */
function fill(queue: TaskQueue, slots: Slot[]): Partial<Record<QueueTier, number>> {
  for (let task = queue.next(slots, () => 0); task; task = queue.next(slots, () => 0)) {
    queue.take(task);
    const free = slots.find((slot) => !slot.task) as unknown as { task: Task };
    free.task = task;
  }
  const running = slots.flatMap(({ task }) => (task ? [task.tier ?? "default"] : []));
  return Object.fromEntries([...new Set(running)].map((tier) => [tier, running.filter((one) => one === tier).length]));
}

test.each([
  [1, 1],
  [2, 1],
  [4, 3],
])("of %i slots, answers of the lowest tier take %i", (count, taken) => {
  const queue = new TaskQueue(false);
  const slots = slotsOf(count);
  for (let at = 0; at < 6; at++) queue.push(taskOf("flex"));
  expect(fill(queue, slots)).toEqual({ flex: taken });
});

test("an answer of a higher tier gets the slot that they leave, and no further one of them begins while it runs", () => {
  const queue = new TaskQueue(false);
  const slots = slotsOf(4);
  for (let at = 0; at < 6; at++) queue.push(taskOf("flex"));
  fill(queue, slots);
  queue.push(taskOf("default"));
  expect(fill(queue, slots)).toEqual({ flex: 3, default: 1 });
  // Two of the lowest tier end: one still runs, so none begins.
  for (const slot of slots.slice(0, 2)) Object.assign(slot, { task: null });
  expect(fill(queue, slots)).toEqual({ flex: 1, default: 1 });
  Object.assign(slots[2] ?? {}, { task: null });
  expect(fill(queue, slots)).toEqual({ flex: 1, default: 1 });
});

test("higher tiers take all slots, and one of the lowest then waits for a free one", () => {
  const queue = new TaskQueue(false);
  const slots = slotsOf(2);
  for (const tier of ["flex", "default", "priority", "default"] as const) queue.push(taskOf(tier));
  expect(fill(queue, slots)).toEqual({ priority: 1, default: 1 });
  for (const slot of slots) Object.assign(slot, { task: null });
  expect(fill(queue, slots)).toEqual({ default: 1, flex: 1 });
});
