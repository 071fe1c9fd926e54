import fc from "fast-check";
import { expect, test } from "vitest";
import { argmax } from "./logits.ts";

test("it is the first of the largest", () => {
  const logit = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constant(-Infinity));
  fc.assert(
    fc.property(fc.array(logit, { minLength: 1, maxLength: 40 }), (logits) => {
      expect(argmax(Float32Array.from(logits))).toBe(logits.indexOf(Math.max(...logits)));
    }),
  );
});
