import { expect, test } from "vitest";
import type { NativeContext } from "../c-api/native-context.ts";
import type { RunningSlot } from "../slot/slot.ts";
import { BatchPlanner } from "./batch-planner.ts";

/** A slot whose draft is nearly certain. `tokens`: those that its sequence holds. */
function slotOf(id: number, tokens: number, promptLeft: number): RunningSlot {
  const task = {
    order: -id,
    promptLeft,
    chunkLimit: promptLeft,
    readsPrompt: false,
    answer: { counts: { generated: 100 } },
    draft: (max: number) => ({ tokens: Array(Math.min(3, max)).fill(7), probabilities: [0.99, 0.98, 0.97] }),
    promptChunk: (count: number) => ({ tokens: Array(count).fill(5), outputs: count === promptLeft ? 1 : 0 }),
    answerChunk: (draft: readonly number[] = []) => ({ tokens: [6, ...draft], outputs: 1 + draft.length }),
  };
  return { id, sequence: { id, nextPosition: tokens }, task } as unknown as RunningSlot;
}

/** A planner, and what it has written to llama.cpp's batch: sequence, position, and whether the logits are needed. */
function planner(speculation: "off" | "always" = "off") {
  const written: (readonly [number, number, boolean])[] = [];
  const batch = {
    clear: () => (written.length = 0),
    add: (_: number, position: number, sequence: number, logits: boolean) =>
      written.push([sequence, position, logits]) - 1,
    get length() {
      return written.length;
    },
  };
  const context = { unifiedKv: true, maxOutputs: 64, maxRollback: Infinity, batch } as unknown as NativeContext;
  const prefill = { maxTokens: 128, maxGapMs: 250, maxBatchMs: 10_000 };
  return { planner: new BatchPlanner({ context, prefill, speculation }), written };
}

test("the sequences of a batch ascend, and only last tokens have logits", () => {
  const { planner: own, written } = planner();
  const { answers, promptTokens, shares } = own.next([slotOf(0, 10, 2), slotOf(1, 20, 0), slotOf(2, 30, 2)]);
  expect([answers, promptTokens, shares.map(({ index }) => index)]).toEqual([1, 4, [0, 2, 3]]);
  expect(written).toEqual([
    [0, 10, false],
    [0, 11, true],
    [1, 20, true],
    [2, 30, false],
    [2, 31, true],
  ]);
});

test("after a batch with drafts for which the KV cache has no cells, no drafts are made for a while", () => {
  const { planner: own } = planner("always");
  const slots = [slotOf(0, 10, 0)];
  const first = own.next(slots);
  expect([first.draftTokens, own.canShrink(first)]).toEqual([3, true]);
  const drafted: number[] = [];
  for (let decode = 0; decode < 66; decode++) {
    const batch = own.next(slots);
    drafted.push(batch.draftTokens);
    own.observe(batch, 10);
  }
  expect(drafted).toEqual([...Array<number>(64).fill(0), 3, 3]);
  expect(own.canShrink(own.next([slotOf(0, 10, 5)]))).toBe(false);
});

test("a prompt joins a batch that has just started only if both are short and fit into a batch", () => {
  const joins = (running: number, arrived: number): boolean => {
    const { planner: own } = planner();
    return own.joins(slotOf(1, 0, arrived).task, own.next([slotOf(0, 0, running)]));
  };
  expect([joins(48, 48), joins(64, 64), joins(64, 65), joins(48, 200), joins(300, 10)]).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});
