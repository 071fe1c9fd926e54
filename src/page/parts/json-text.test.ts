import fc from "fast-check";
import { expect, test } from "vitest";
import { indentedJson } from "./json-text.ts";

test("for every value: the lines are those of JSON.stringify, whatever the spacing was", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t"), (value, space) => {
      expect(indentedJson(JSON.stringify(value, null, space))).toBe(JSON.stringify(value, null, 2));
    }),
  );
});

test("numbers and escapes stay as they were written; other texts, too", () => {
  expect(indentedJson('{"a":12345678901234567890,"b":1.0,"c":"\\u00e9"}')).toBe(
    '{\n  "a": 12345678901234567890,\n  "b": 1.0,\n  "c": "\\u00e9"\n}',
  );
  expect(indentedJson('{"a":1} and more')).toBe('{"a":1} and more');
});

test("deep nesting does not make a text of quadratic length", () => {
  const deep = 20_000;
  expect(indentedJson(`${"[".repeat(deep)}${"]".repeat(deep)}`).length).toBeLessThan(200 * deep);
});
