import fc from "fast-check";
import { expect, test } from "vitest";
import { firstDifference, laidOut } from "./layout-rule.ts";

const indents = fc.constantFrom(0, 1, 2, 4);

test("a JSON text in any layout gets the layout of JSON.stringify", () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: "binary", maxDepth: 4 }), indents, indents, (value, from, to) => {
      expect(laidOut(JSON.stringify(value, null, from), to)).toBe(JSON.stringify(value, null, to));
    }),
  );
});

test("numbers are unchanged; strings lose escapes that JSON does not require", () => {
  expect(laidOut('{"a": [0.0, -1e-6, 1E5], "b": "\\u00e9\\/\\n\\"{}[],:"}', 0)).toBe(
    '{"a":[0.0,-1e-6,1E5],"b":"é/\\n\\"{}[],:"}',
  );
});

test("the first difference is where two texts differ, or where one of them ends", () => {
  expect(firstDifference("abc", "abc")).toBeUndefined();
  expect(firstDifference("abc", "abd")).toBe(2);
  expect(firstDifference("abc", "ab")).toBe(2);
  expect(firstDifference("", "x")).toBe(0);
});
