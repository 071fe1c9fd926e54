import fc from "fast-check";
import { expect, test, describe } from "vitest";
import { argmax, seededRandom, readWindow, withToken, choiceSeed } from "./logits.ts";

describe("argmax", () => {
  test("returns the first one of the largest", () => {
    const logit = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constant(-Infinity));
    fc.assert(
      fc.property(fc.array(logit, { minLength: 1, maxLength: 40 }), (logits) => {
        expect(argmax(Float32Array.from(logits))).toBe(logits.indexOf(Math.max(...logits)));
      }),
    );
  });

  // A comparison that was false for NaN made it the largest, and everything after it larger.
  test("never returns what is not a number", () => {
    for (let at = 0; at < 20; at++)
      expect(argmax(Float32Array.from({ length: 20 }, (_, i) => (i === at ? Number.NaN : 20 - i)))).toBe(
        at === 0 ? 1 : 0,
      );
  });
});

describe("the window of likeliest tokens", () => {
  const logits = fc.oneof(
    fc.float32Array({ minLength: 1, maxLength: 200, min: -60, max: 60, noNaN: true }),
    // Above 32, the sum is computed in another way.
    fc.float32Array({ minLength: 1, maxLength: 200, min: -60, max: 32, noNaN: true }),
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
