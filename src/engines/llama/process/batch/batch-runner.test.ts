import fc from "fast-check";
import { expect, test } from "vitest";
import type { DecodeResult, NativeContext } from "../c-api/native-context.ts";
import type { Batch } from "./batch-planner.ts";
import { BatchRunner } from "./batch-runner.ts";

test("aborts for what has just arrived lose at most an eighth of a decode until one completes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 30 }), async (arrivals) => {
      let now = 0;
      let settle: (result: DecodeResult) => void = () => {};
      const context = {
        model: { isRecurrent: false },
        decodeAsync: () => new Promise<DecodeResult>((resolve) => (settle = resolve)),
        abort: () => settle("aborted"),
      } as unknown as NativeContext;
      const runner = new BatchRunner(context, () => now);
      const expectedMs = 400;
      let lost = 0;
      for (const after of arrivals) {
        const running = runner.decode({ shares: [] } as unknown as Batch, expectedMs);
        now += after;
        const aborted = runner.abortIfEarly();
        // It is aborted if, and only if, the limit allows it.
        expect(aborted).toBe(lost + after <= expectedMs / 8);
        if (!aborted) settle("done");
        expect((await running).result).toBe(aborted ? "aborted" : "done");
        lost = aborted ? lost + after : 0;
      }
      expect(runner.abortIfEarly()).toBe(false);
    }),
  );
});
