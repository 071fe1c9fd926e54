import fc from "fast-check";
import { expect, test } from "vitest";
import { seededRandom, sampleSoftmax } from "./logits.ts";

const logit = fc.oneof(
  { weight: 9, arbitrary: fc.float({ min: -60, max: 60, noNaN: true }) },
  { weight: 1, arbitrary: fc.constant(-Infinity) },
);

test("a chance falls on the token whose part of the whole it is", () => {
  fc.assert(
    fc.property(
      fc.array(logit, { minLength: 1, maxLength: 700 }).filter((logits) => logits.some((each) => each > -Infinity)),
      fc.double({ min: 0.05, max: 5, noNaN: true }),
      // The sum of the weights is rounded, so that a chance within a rounding error of 1 may fall beyond the last token.
      fc.double({ min: 0, max: 1 - 1e-9, noNaN: true }),
      (values, temperature, chance) => {
        const logits = Float32Array.from(values);
        const drawn = sampleSoftmax(temperature, () => chance)(logits);
        const largest = logits.reduce((most, each) => Math.max(most, each), -Infinity);
        const weights = Array.from(logits, (each) => Math.exp((each - largest) / temperature));
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        const before = weights.slice(0, drawn).reduce((sum, weight) => sum + weight, 0);
        expect(chance * total).toBeGreaterThanOrEqual(before - 1e-7 * total);
        expect(chance * total).toBeLessThanOrEqual(before + (weights[drawn] ?? 0) + 1e-7 * total);
        expect(weights[drawn]).toBeGreaterThan(0);
      },
    ),
  );
});

test("what is drawn often is likely in proportion", () => {
  const logits = Float32Array.from({ length: 600 }, (_, at) => (at % 200 === 7 ? 2 : -30));
  const draw = sampleSoftmax(0.7, seededRandom(3));
  const counts = new Map<number, number>();
  for (let i = 0; i < 3000; i++) {
    const drawn = draw(logits);
    counts.set(drawn, (counts.get(drawn) ?? 0) + 1);
  }
  expect([...counts.keys()].toSorted((one, other) => one - other)).toEqual([7, 207, 407]);
  for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(120);
});

test("banned tokens are never drawn, at the ends of the chances neither", () => {
  const logits = Float32Array.of(-Infinity, 1, -Infinity, 1, -Infinity);
  expect(sampleSoftmax(1, () => 0)(logits)).toBe(1);
  expect(sampleSoftmax(1, () => 0.5)(logits)).toBe(3);
  expect(sampleSoftmax(1, () => 1 - 2 ** -53)(logits)).toBe(3);
});
