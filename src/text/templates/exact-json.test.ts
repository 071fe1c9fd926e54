import fc from "fast-check";
import { expect, test } from "vitest";
import { ExactNumber, parseExactJson } from "./exact-json.ts";

test.each<[text: string, parsed: unknown]>([
  ["1.0", new ExactNumber("1.0")],
  ["[1e2, 1.5, 10]", [new ExactNumber("1e2"), 1.5, 10]],
  ['{"a": 12345678901234567890, "1.0": "2.0"}', { a: new ExactNumber("12345678901234567890"), "1.0": "2.0" }],
  ['{"": {}, "x": [[], "]}", {"y": null}]}', { "": {}, x: [[], "]}", { y: null }] }],
  ['[-0.0, "\\"1.0\\\\"]', [new ExactNumber("-0.0"), '"1.0\\']],
])("%s", (text, parsed) => {
  expect(parseExactJson(text)).toEqual(parsed);
});

test("equals JSON.parse, except for numbers whose text would change", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.boolean(), (value, float) => {
      // A number with a point selects the exact parser.
      const text = JSON.stringify(float ? [value, 0.5] : value);
      expect(plain(parseExactJson(text))).toEqual(JSON.parse(text));
    }),
  );
});

test.each(["", "{", "[1,]", "{'a': 1}", "01.0"])("%j is rejected", (text) => {
  expect(() => parseExactJson(text)).toThrow(SyntaxError);
});

function plain(value: unknown): unknown {
  if (value instanceof ExactNumber) return Number(value.value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, plain(item)] as const);
  return Object.fromEntries(entries);
}
