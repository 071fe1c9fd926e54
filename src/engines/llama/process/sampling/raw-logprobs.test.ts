import fc from "fast-check";
import { expect, test } from "vitest";
import { readWindow, withToken } from "./logits.ts";

const logits = fc.float32Array({ minLength: 1, maxLength: 200, min: -60, max: 60, noNaN: true });

test("the window shows the likeliest tokens, best first, and the sum over all", () => {
  fc.assert(
    fc.property(logits, fc.nat(25), (row, top) => {
      const window = readWindow(row, top);
      const order = [...row].map((logit, token) => ({ logit, token })).sort((a, b) => b.logit - a.logit);
      expect(window.logits).toEqual(order.slice(0, top).map(({ logit }) => logit));
      expect(window.tokens.map((token) => row[token])).toEqual(window.logits);
      expect(new Set(window.tokens).size).toBe(Math.min(top, row.length));
      const largest = Math.max(...row);
      const sum = row.reduce((total, logit) => total + Math.exp(logit - largest), 0);
      expect(window.logTotal).toBeCloseTo(largest + Math.log(sum), 8);
    }),
  );
});

test("banned tokens weigh nothing", () => {
  expect(readWindow(Float32Array.of(-Infinity, 0, -Infinity), 3)).toEqual({
    tokens: [1, 0, 2],
    logits: [0, -Infinity, -Infinity],
    logTotal: 0,
  });
});

test("a token that stands outside comes last", () => {
  const window = readWindow(Float32Array.of(3, 2, 1), 1);
  expect(withToken(window, 2, 1).tokens).toEqual([0, 2]);
  expect(withToken(window, 0, 3)).toBe(window);
});
