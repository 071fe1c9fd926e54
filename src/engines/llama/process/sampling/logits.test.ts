import fc from "fast-check";
import { expect, test, describe } from "vitest";
import { argmax, seededRandom, sampleSoftmax, readWindow, withToken, choiceSeed } from "./logits.ts";

describe("argmax", () => {
  test("returns the first one of the largest", () => {
    const logit = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constant(-Infinity));
    fc.assert(
      fc.property(fc.array(logit, { minLength: 1, maxLength: 40 }), (logits) => {
        expect(argmax(Float32Array.from(logits))).toBe(logits.indexOf(Math.max(...logits)));
      }),
    );
  });
});

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

  test("a random number selects the token whose share of the distribution contains it, to 0.3 %", () => {
    fc.assert(
      fc.property(
        fc.array(logit, { minLength: 1, maxLength: 700 }).filter((logits) => logits.some((each) => each > -Infinity)),
        fc.double({ min: 0.05, max: 5, noNaN: true }),
        // The sum of the weights is rounded, so that a number within a rounding error of 1 may be past the last token.
        fc.double({ min: 0, max: 1 - 1e-9, noNaN: true }),
        (values, temperature, random) => {
          const logits = Float32Array.from(values);
          const sampled = sampleSoftmax(temperature, accepting(random))(logits);
          const largest = logits.reduce((max, each) => Math.max(max, each), -Infinity);
          const weights = Array.from(logits, (each) => Math.exp((each - largest) / temperature));
          const total = weights.reduce((sum, weight) => sum + weight, 0);
          const before = weights.slice(0, sampled).reduce((sum, weight) => sum + weight, 0);
          expect(random * total).toBeGreaterThanOrEqual(before - 0.003 * total);
          expect(random * total).toBeLessThanOrEqual(before + (weights[sampled] ?? 0) + 0.003 * total);
          expect(weights[sampled]).toBeGreaterThan(0);
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

  // The weights alone favour some tokens by up to 0.3 %: what is accepted of each must make up for it.
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
        fc.double({ min: 0.05, max: 5, noNaN: true }),
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
});

describe("the window of likeliest tokens", () => {
  const logits = fc.oneof(
    fc.float32Array({ minLength: 1, maxLength: 200, min: -60, max: 60, noNaN: true }),
    fc.array(fc.integer({ min: -3, max: 3 }), { minLength: 1, maxLength: 60 }).map((row) => Float32Array.from(row)),
  );

  test("contains the likeliest tokens in descending order, of equal ones the first, and the sum over all", () => {
    fc.assert(
      fc.property(logits, fc.nat(25), (row, top) => {
        const window = readWindow(row, top);
        const order = [...row].map((logit, token) => ({ logit, token })).sort((a, b) => b.logit - a.logit);
        expect(window.logits).toEqual(order.slice(0, top).map(({ logit }) => logit));
        expect(window.tokens).toEqual(order.slice(0, top).map(({ token }) => token));
        expect(new Set(window.tokens).size).toBe(Math.min(top, row.length));
        const largest = Math.max(...row);
        const sum = row.reduce((total, logit) => total + Math.exp(logit - largest), 0);
        expect(window.logTotal).toBeCloseTo(largest + Math.log(sum), 8);
      }),
    );
  });

  test("banned tokens have no weight", () => {
    expect(readWindow(Float32Array.of(-Infinity, 0, -Infinity), 3)).toEqual({
      tokens: [1, 0, 2],
      logits: [0, -Infinity, -Infinity],
      logTotal: 0,
    });
  });

  test("a token outside of the window is appended", () => {
    const window = readWindow(Float32Array.of(3, 2, 1), 1);
    expect(withToken(window, 2, 1).tokens).toEqual([0, 2]);
    expect(withToken(window, 0, 3)).toBe(window);
  });
});

describe("seeds", () => {
  test("are 32-bit, differ by seed and choice, and are never llama.cpp's value for a random seed", () => {
    const seeds = new Set<number>();
    for (const seed of [
      0,
      1,
      -1,
      42,
      2 ** 31,
      2 ** 32,
      2 ** 32 + 1,
      Number.MAX_SAFE_INTEGER,
      Number.MIN_SAFE_INTEGER,
    ]) {
      for (let choice = 0; choice < 8; choice++) {
        const mixed = choiceSeed(seed, choice);
        expect(mixed).toBe(choiceSeed(seed, choice));
        expect(Number.isInteger(mixed) && mixed >= 0 && mixed < 0xffff_ffff).toBe(true);
        seeds.add(mixed);
      }
    }
    expect(seeds.size).toBe(9 * 8);
  });

  test("random numbers are uniform in [0, 1) and repeat with their seed", () => {
    const buckets = Array<number>(20).fill(0);
    const random = seededRandom(7);
    const again = seededRandom(7);
    const values = Array.from({ length: 20_000 }, random);
    expect(Array.from({ length: 20_000 }, again)).toEqual(values);
    for (const value of values) {
      buckets[Math.floor(value * 20)] = (buckets[Math.floor(value * 20)] ?? 0) + 1;
    }
    // Chi-square with 19 degrees of freedom: 43.8 is the limit for one in a thousand.
    expect(buckets.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0)).toBeLessThan(43.8);
  });
});
