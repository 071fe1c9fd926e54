import { expect, test } from "vitest";
import { choiceSeed, seededRandom } from "./logits.ts";

test("seeds are 32-bit, never llama.cpp's word for a seed of its own, and tell seeds and choices apart", () => {
  const seeds = new Set<number>();
  for (const seed of [0, 1, -1, 42, 2 ** 31, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) {
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
