import fc from "fast-check";
import { expect, test } from "vitest";
import type { GenerationEvent } from "../../generation/event.ts";
import { eventBytes } from "./event-bytes.ts";
import { EventPage } from "./event-page.ts";
import { PackedTexts } from "./packed-texts.ts";

const text = fc.oneof(
  { weight: 8, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
  fc.constantFrom("", "\u0000", "\u0001\u0002", "x".repeat(300), "\ud83d", "y".repeat(50_001)),
);
const choice = fc.integer({ min: 0, max: 2 });
const event: fc.Arbitrary<GenerationEvent> = fc.oneof(
  { weight: 9, arbitrary: fc.record({ type: fc.constant("text-delta" as const), choice, text }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("reasoning-delta" as const), choice, text }) },
  fc.record({
    type: fc.constant("text-delta" as const),
    choice,
    text,
    logprobs: fc.constant([{ token: "a", logprob: -1, bytes: null, top: [] }]),
  }),
  fc.record({ type: fc.constant("reasoning-delta" as const), choice, text, summary: fc.nat(2) }),
  fc.record({ type: fc.constant("refusal-delta" as const), choice, text }),
  fc.record({ type: fc.constant("finish" as const), choice, reason: fc.constant("stop" as const) }),
  fc.constant({ type: "end" as const, end: { kind: "done" as const } }),
);

test("events are told as they came, in their batches, packed or not", () => {
  fc.assert(
    fc.property(fc.array(fc.array(event, { maxLength: 8 }), { maxLength: 30 }), fc.boolean(), (batches, isClosed) => {
      const page = new EventPage(new PackedTexts());
      for (const [ms, batch] of batches.entries()) page.add(ms, batch, eventBytes(batch));
      if (isClosed) page.close();
      expect(page.shown()).toEqual(batches.map((events, ms) => ({ ms, events })));
      expect(JSON.stringify(page.shown())).toBe(JSON.stringify(batches.map((events, ms) => ({ ms, events }))));
      expect(page.pieces).toBe(batches.length);
    }),
  );
});

test("plain texts are packed", () => {
  const page = new EventPage(new PackedTexts());
  page.add(0, [{ type: "text-delta", choice: 0, text: "a" }], 100);
  page.close();
  expect(page.isFull).toBe(true);
});
