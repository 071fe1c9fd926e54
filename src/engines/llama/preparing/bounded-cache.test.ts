import * as fc from "fast-check";
import { expect, test } from "vitest";
import { BoundedCache } from "./bounded-cache.ts";

test("what was used longest ago is dropped first", () => {
  const dropped: string[] = [];
  const cache = new BoundedCache<string>({ values: 2, weight: 100 }, (value) => dropped.push(value));
  cache.add("a", "A", 1);
  cache.add("b", "B", 1);
  expect(cache.get("a")).toBe("A");
  cache.add("c", "C", 1);
  expect(dropped).toEqual(["B"]);
  expect([cache.get("a"), cache.get("b"), cache.get("c")]).toEqual(["A", undefined, "C"]);
});

test("it never holds more than its limits, but for one value that is too heavy by itself", () => {
  const action = fc.record({ key: fc.integer({ min: 0, max: 9 }), weight: fc.integer({ min: 0, max: 60 }) });
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      const kept = new Map<string, number>();
      const cache = new BoundedCache<string>({ values: 4, weight: 50 }, (key) => kept.delete(key));
      for (const { key: number, weight } of actions) {
        const key = String(number);
        expect(cache.get(key)).toBe(kept.has(key) ? key : undefined);
        if (kept.has(key)) continue;
        kept.set(key, weight);
        cache.add(key, key, weight);
        expect(kept.has(key)).toBe(true);
        const sum = [...kept.values()].reduce((total, each) => total + each, 0);
        expect(kept.size).toBeLessThanOrEqual(4);
        if (kept.size > 1) expect(sum).toBeLessThanOrEqual(50);
      }
    }),
  );
});
