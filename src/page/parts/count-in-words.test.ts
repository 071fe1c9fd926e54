import { expect, test } from "vitest";
import { countInWords } from "./count-in-words.ts";

// Inspect said "1 requests".
test.each([
  [0, "0 requests"],
  [1, "1 request"],
  [2, "2 requests"],
  [12_000, "12,000 requests"],
])("%d", (count, text) => {
  expect(countInWords(count, "request")).toBe(text);
});
