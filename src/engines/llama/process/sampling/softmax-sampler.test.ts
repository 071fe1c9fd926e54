import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { seededRandom } from "./logits.ts";
import { sampleSoftmax } from "./softmax-sampler.ts";

describe("softmax sampling", () => {
  const logit = fc.oneof(
    { weight: 9, arbitrary: fc.float({ min: -60, max: 60, noNaN: true }) },
    { weight: 1, arbitrary: fc.constant(-Infinity) },
  );

  /** Returns `selecting` and a number that accepts what it has selected, in turns. */
  const accepting = (selecting: number): (() => number) => {
    let calls = 0;
    return () => (calls++ % 2 === 0 ? selecting : 0);
  };

  test("a random number selects the token whose share of the distribution contains it, to two hundredths", () => {
    fc.assert(
      fc.property(
        // Of logits up to 2, the upper 16 bits determine the weight to 1.6 %.
        fc.array(fc.float({ min: -2, max: 2, noNaN: true }), { minLength: 1, maxLength: 700 }),
        fc.double({ min: 1, max: 5, noNaN: true }),
        // The sum of the weights is rounded, so that a number within a rounding error of 1 may be past the last token.
        fc.double({ min: 0, max: 1 - 1e-9, noNaN: true }),
        (values, temperature, random) => {
          const logits = Float32Array.from(values);
          const sampled = sampleSoftmax(temperature, accepting(random))(logits);
          const weights = Array.from(logits, (each) => Math.exp(each / temperature));
          const total = weights.reduce((sum, weight) => sum + weight, 0);
          const before = weights.slice(0, sampled).reduce((sum, weight) => sum + weight, 0);
          expect(random * total).toBeGreaterThanOrEqual(before - 0.02 * total);
          expect(random * total).toBeLessThanOrEqual(before + (weights[sampled] ?? 0) + 0.02 * total);
        },
      ),
    );
  });

  test("tokens are sampled in proportion to their probability", () => {
    const logits = Float32Array.from({ length: 600 }, (_, at) => (at % 200 === 7 ? 2 : -30));
    const sample = sampleSoftmax(0.7, seededRandom(3));
    const counts = new Map<number, number>();
    for (let i = 0; i < 3000; i++) {
      const sampled = sample(logits);
      counts.set(sampled, (counts.get(sampled) ?? 0) + 1);
    }
    expect([...counts.keys()].toSorted((one, other) => one - other)).toEqual([7, 207, 407]);
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(120);
  });

  // The weights of the table favour some tokens: what is accepted of each must make up for it. At low temperatures the table is not used.
  test("the share of each token, of which a part is accepted, is exactly its probability", () => {
    /** The end of the numbers from 0 on for which `holds`, at most 1. */
    const endOf = (holds: (number: number) => boolean): number => {
      let [low, high] = [0, 1];
      for (let step = 0; step < 60; step++) {
        const middle = (low + high) / 2;
        if (holds(middle)) low = middle;
        else high = middle;
      }
      return high;
    };
    fc.assert(
      fc.property(
        fc.array(logit, { minLength: 1, maxLength: 6 }).filter((logits) => logits.some((each) => each > -Infinity)),
        fc.double({ min: 0.02, max: 5, noNaN: true }),
        (values, temperature) => {
          const logits = Float32Array.from(values);
          const rejected = new Error("A third number is taken: the token was rejected.");
          /** The token that the first number selects; −1 if the second one rejects it. */
          const sampled = (...numbers: number[]): number => {
            const next = (): number => {
              const number = numbers.shift();
              if (number === undefined) throw rejected;
              return number;
            };
            try {
              return sampleSoftmax(temperature, next)(logits);
            } catch (error) {
              if (error !== rejected) throw error;
              return -1;
            }
          };
          const ends = values.map((_, token) => endOf((number) => sampled(number, 0) <= token));
          const shares = ends.map((end, token) => {
            const start = ends[token - 1] ?? 0;
            return end - start < 1e-12 ? 0 : (end - start) * endOf((number) => sampled((start + end) / 2, number) >= 0);
          });
          const largest = logits.reduce((max, each) => Math.max(max, each), -Infinity);
          const weights = Array.from(logits, (each) => Math.exp((each - largest) / temperature));
          const sum = (numbers: readonly number[]): number => numbers.reduce((all, number) => all + number, 0);
          for (const [token, weight] of weights.entries())
            expect((shares[token] ?? 0) / sum(shares)).toBeCloseTo(weight / sum(weights), 9);
        },
      ),
    );
  });

  test("banned tokens are never sampled, not even for the smallest and the largest random number", () => {
    const logits = Float32Array.of(-Infinity, 1, -Infinity, 1, -Infinity);
    expect(sampleSoftmax(1, accepting(0))(logits)).toBe(1);
    expect(sampleSoftmax(1, accepting(0.5))(logits)).toBe(3);
    expect(sampleSoftmax(1, accepting(1 - 2 ** -53))(logits)).toBe(3);
  });

  test("after many rejections the exact weights are used", () => {
    const numbers = [...Array.from({ length: 30 }, () => [0, 1 - 2 ** -53]).flat(), 0.9];
    const logits = Float32Array.of(1, 1.001, 1.001);
    expect(sampleSoftmax(1, () => numbers.shift() ?? Number.NaN)(logits)).toBe(2);
    expect(numbers).toEqual([]);
  });

  test.each([1e-3, 0.1, 1])("logits of any size are sampled at temperature %d", (temperature) => {
    for (const size of [0, 1e-30, 30, 3000, 1e6, 3e38]) {
      const sample = sampleSoftmax(temperature, seededRandom(5));
      expect(sample(Float32Array.of(-size, size - size / 2, Number.NaN, -Infinity))).toBeLessThan(2);
      expect(sample(Float32Array.of(-Infinity, -Infinity, -size))).toBe(2);
    }
  });
});
