import fc from "fast-check";
import { expect, test } from "vitest";
import { NGramIndex } from "./drafter.ts";

/** The place behind the latest earlier row of `size` tokens that is the same as the one before `end`. */
function searched(text: readonly number[], size: number, end: number): number | undefined {
  for (let other = end - 1; other >= size; other--)
    if (text.slice(other - size, other).every((token, i) => token === text[end - size + i])) return other;
  return undefined;
}

test("it finds what a search of the whole text finds", () => {
  // Few different tokens, so that rows come again; many texts, so that the table grows.
  const token = fc.oneof(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 200_000 }));
  fc.assert(
    fc.property(fc.array(token, { maxLength: 700, size: "max" }), fc.integer({ min: 1, max: 5 }), (text, size) => {
      const index = new NGramIndex(text, size);
      for (let end = 0; end <= text.length; end++) {
        const expected = end < size ? undefined : searched(text, size, end);
        expect(index.add(end)).toBe(expected);
      }
    }),
    { numRuns: 60 },
  );
});

test("a text that grows is read as far as it was told", () => {
  const text: number[] = [];
  const index = new NGramIndex(text, 2);
  const found = [7, 8, 9, 7, 8, 7, 8].map((token) => index.add(text.push(token)));
  expect(found).toEqual([undefined, undefined, undefined, undefined, 2, undefined, 5]);
});

test("a long text costs as much a token as a short one", () => {
  const steps = (length: number): number => {
    let looks = 0;
    const text = Array.from({ length }, (_, i) => (i * 7919) % 50_021);
    const counted = new Proxy(text, {
      get(target, name, receiver) {
        if (name !== "length") looks++;
        return Reflect.get(target, name, receiver) as unknown;
      },
    });
    const index = new NGramIndex(counted, 3);
    for (let end = 0; end <= length; end++) index.add(end);
    return looks / length;
  };
  expect(steps(20_000)).toBeLessThan(2 * steps(1000) + 10);
});
