import fc from "fast-check";
import { expect, test } from "vitest";
import { PackedTexts } from "./packed-texts.ts";
import type { PackedText } from "./packed-texts.ts";

/** Packs a text, or lets go of one that was packed. */
const steps = fc.array(
  fc.oneof(
    fc.record({ text: fc.string({ maxLength: 20_000, size: "max" }) }),
    fc.record({ text: fc.string({ unit: "grapheme", maxLength: 40 }) }),
    fc.record({ which: fc.nat() }),
  ),
  { maxLength: 100 },
);

test("what is packed stays what it is while the places of others are used again", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const texts = new PackedTexts();
      const kept: { readonly packed: PackedText; readonly text: string }[] = [];
      for (const step of taken) {
        if ("text" in step) {
          const packed = texts.pack(step.text, 3 * step.text.length);
          expect(packed).toBeDefined();
          if (packed) kept.push({ packed, text: step.text });
        } else {
          const [gone] = kept.splice(step.which % Math.max(1, kept.length), 1);
          gone?.packed.letGo();
          // A second time changes nothing.
          gone?.packed.letGo();
          if (gone) expect(gone.packed.read()).toBe("");
        }
        for (const { packed, text } of kept) expect(packed.read()).toBe(text);
      }
    }),
    { numRuns: 40 },
  );
});

test("what UTF-8 cannot tell, or what takes more than it may, is not packed", () => {
  const texts = new PackedTexts();
  expect(texts.pack("a\ud83d", 100)).toBeUndefined();
  expect(texts.pack("\ud83d\ude00", 4)?.read()).toBe("\ud83d\ude00");
  expect(texts.pack("\ud83d\ude00", 3)).toBeUndefined();
  expect(texts.pack("x".repeat(70_000), 1e6)).toBeUndefined();
});
