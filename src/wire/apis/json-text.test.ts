import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonText, JsonText, type JsonValue, rustFloatText } from "./json-text.ts";
import { obfuscate } from "./chat/chat-envelope.ts";

const json = fc.jsonValue() as fc.Arbitrary<JsonValue>;

test("without texts of our own it is JSON.stringify, at any indent", () => {
  fc.assert(
    fc.property(json, fc.constantFrom(0, 2, 4), (value, indent) => {
      expect(jsonText(value, indent)).toBe(JSON.stringify(value, null, indent));
    }),
  );
});

test("members that are undefined are left out, texts go in as they are", () => {
  expect(jsonText({ a: undefined, b: new JsonText("0.0") })).toBe('{"b":0.0}');
  expect(jsonText({ a: undefined }, 2)).toBe("{}");
});

test.each([
  [0, "0.0"],
  [-1, "-1.0"],
  [-9999, "-9999.0"],
  [-0.25, "-0.25"],
  [-0.000064325184, "-0.000064325184"],
  [-1e-5, "-0.00001"],
  [-1.147242e-6, "-1.147242e-6"],
  [-1.9361264946837764e-7, "-1.9361264946837764e-7"],
  [-3e-10, "-3e-10"],
  [1e15, "1000000000000000.0"],
  [1e16, "1e16"],
  [1.5e21, "1.5e21"],
])("%d is printed %s, as Rust does", (value, text) => {
  expect(rustFloatText(value)).toBe(text);
});

test("a float that is printed is the same when read", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      expect(Object.is(Number(rustFloatText(value)), value)).toBe(true);
      expect(rustFloatText(value)).toMatch(/^-?(\d+\.\d+|\d(\.\d+)?e-?\d+)$/);
    }),
  );
});

test("obfuscation brings the length to 1 modulo 16, counted in characters", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 40 }), (text) => {
      const chunk = obfuscate(JSON.stringify({ text }).slice(0, -1), Math.random);
      const { obfuscation }: { obfuscation: string } = JSON.parse(chunk);
      expect([...chunk].length % 16).toBe(1);
      expect(obfuscation).toMatch(/^[0-9A-Za-z]{0,15}$/);
    }),
  );
});
