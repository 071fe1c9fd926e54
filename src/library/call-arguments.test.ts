import fc from "fast-check";
import { expect, test } from "vitest";
import { parseArguments } from "./call-arguments.ts";

const call = (text: string): { id: string; name: string; arguments: string } => ({
  id: "call_1",
  name: "f",
  arguments: text,
});

test("what the text says and the text itself both survive: zeros, falses, empty strings, key order, how a number is written", () => {
  const text = '{"b":0,"a":false,"":"","n":1.50}';
  expect(parseArguments(call(text))).toEqual({
    valid: true,
    value: { b: 0, a: false, "": "", n: 1.5 },
    text,
  });
});

test("no text is no arguments", () => {
  expect(parseArguments(call(" "))).toEqual({ valid: true, value: {}, text: " " });
});

test("for every text: nothing is thrown, the text is kept, and only objects are valid", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      const parsed = parseArguments(call(text));
      expect(parsed.text).toBe(text);
      expect(parsed.valid).toBe(parsed.value !== null);
    }),
  );
  for (const text of ["[]", "1", "null", '"{}"', "{"]) expect(parseArguments(call(text)).valid).toBe(false);
});
