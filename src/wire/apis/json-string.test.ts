import * as fc from "fast-check";
import { expect, test } from "vitest";
import { jsonString } from "./json-text.ts";

test("it is JSON.stringify, for every text", () => {
  for (const text of ["\ud800", "a\udc00b", "😀", '"', "\\", "\n", "\u007f", "\u2028", "", "x".repeat(65)]) {
    expect(jsonString(text)).toBe(JSON.stringify(text));
  }
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 100 }), (text) => jsonString(text) === JSON.stringify(text)),
  );
});
