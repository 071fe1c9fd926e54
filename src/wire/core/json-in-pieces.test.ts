import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isLong, jsonChunks } from "./json-chunks.ts";

const value = fc.jsonValue({ stringUnit: "binary", maxDepth: 5 });

describe("for every value", () => {
  test("the pieces of any size are what JSON.stringify writes", () => {
    fc.assert(
      fc.property(value, fc.integer({ min: 1, max: 60 }), (json, size) => {
        expect([...jsonChunks(json, size)].join("")).toBe(JSON.stringify(json));
      }),
    );
  });

  test("a short one is written at once", () => {
    fc.assert(
      fc.property(value, (json) => {
        const size = JSON.stringify(json).length * 10;
        if (!isLong(json, size)) expect([...jsonChunks(json, size)]).toEqual([JSON.stringify(json)]);
      }),
    );
  });
});

test("members that are undefined are left out", () => {
  const json = {
    a: undefined,
    b: [1, "x".repeat(50), undefined],
    c: undefined,
    d: { e: undefined, f: "y".repeat(50) },
  };
  expect([...jsonChunks(json, 10)].join("")).toBe(JSON.stringify(json));
});

test("no piece is much longer than asked for", () => {
  const json = { texts: ["ä".repeat(5000), '"'.repeat(5000)], numbers: Array.from({ length: 5000 }, (_, at) => at) };
  const pieces = [...jsonChunks(json, 100)];
  // A character may be written as six.
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(800);
});

test("what is nested too deeply is refused, as by JSON.stringify", () => {
  let deep: unknown = "x".repeat(100);
  for (let level = 0; level < 200_000; level++) deep = [deep];
  expect(() => [...jsonChunks(deep, 10)]).toThrow(RangeError);
  expect(() => isLong(deep, 1_000_000)).toThrow(RangeError);
});
