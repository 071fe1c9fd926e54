import { describe, expect, test } from "vitest";
import { checkJson, judgeJson } from "./check-json.ts";
import { cpuMs } from "../../../test/support/hang.ts";

// Paths in the answer contain names that the model wrote, and were logged.
test("errors have paths in the schema; a valid answer has none", () => {
  const schema = { type: "object", properties: { n: { type: "integer", multipleOf: 3 } }, required: ["n"] };
  expect(checkJson('{"n":9}', schema)).toBe(null);
  expect(checkJson('{"n":10}', schema)).toBe("#/properties/n/multipleOf must be multiple of 3");
  expect(checkJson("{}", schema)).toBe("#/required must have required property 'n'");
  expect(checkJson("1", true)).toBe(null);
  expect(checkJson("1", false)).toBe("#/false schema boolean schema is false");
});

// A pattern of thirty characters blocked the server for 34 seconds.
test("patterns are matched in linear time in every keyword", () => {
  const evil = "^(a+)+$";
  const text = `${"a".repeat(5000)}!`;
  const spent = cpuMs(() => {
    expect(checkJson(JSON.stringify(text), { pattern: evil })).toContain("must match pattern");
    expect(checkJson(JSON.stringify({ [text]: 1 }), { patternProperties: { [evil]: false } })).toBe(null);
    expect(checkJson(JSON.stringify({ [text]: 1 }), { propertyNames: { pattern: evil } })).toContain(
      "must match pattern",
    );
  });
  expect(spent).toBeLessThan(5000);
});

test("two patterns of a schema are not confused", () => {
  const schema = { properties: { a: { pattern: "^x" }, b: { pattern: "^y" } } };
  expect(checkJson('{"a":"x1","b":"y1"}', schema)).toBe(null);
  expect(checkJson('{"a":"y1","b":"y1"}', schema)).toBe('#/properties/a/pattern must match pattern "^x"');
});

test("a pattern that has no linear-time matching is rejected", () => {
  expect(() => checkJson('"a"', { pattern: "(?=a)a" })).toThrow("look-ahead is not supported");
});

// ajv returned a promise that was rejected, which ended the process.
test("$async in a schema has no effect", async () => {
  const rejected: unknown[] = [];
  const note = (reason: unknown): void => void rejected.push(reason);
  process.on("unhandledRejection", note);
  expect(checkJson('{"n":"x"}', { $async: true, properties: { n: { type: "integer" } } })).toBe(
    "#/properties/n/type must be integer",
  );
  const nested = { $defs: { n: { $async: true, type: "integer" } }, properties: { n: { $ref: "#/$defs/n" } } };
  expect(() => checkJson('{"n":"x"}', nested)).toThrow("async schema");
  // Node reports rejections before the next turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", note);
  expect(rejected).toEqual([]);
});

describe("judgeJson", () => {
  const schema = {
    type: "object",
    properties: {
      n: { type: "integer" },
      on: { type: "boolean" },
      name: { type: "string" },
      at: { $ref: "#/$defs/at" },
    },
    required: ["n"],
    $defs: { at: { type: "object", properties: { x: { type: "number" } } } },
  };

  test.each([
    ['{"n":"5","on":"true"}', '{"n":5,"on":true}'],
    ['{"n":5,"name":null}', '{"n":5}'],
    ['{"n":5,"name":7}', '{"n":5,"name":"7"}'],
    ['{"n":5,"at":{"x":null}}', '{"n":5,"at":{}}'],
  ])("repairs %s", (json, repaired) => {
    expect(judgeJson(json, schema)).toMatchObject({ repaired });
  });

  test.each(['{"n":5}', '{"n":5,"on":false}'])("accepts %s", (json) => {
    expect(judgeJson(json, schema)).toBe(null);
  });

  test("invents no value for null, and repairs no text that is not JSON", () => {
    expect(judgeJson('{"n":null}', schema)).toEqual({ errors: "#/properties/n/type must be integer" });
    expect(judgeJson('{"n":', schema)).toEqual({ errors: "the text is not JSON" });
    expect(judgeJson('{"n":"five"}', schema)).not.toHaveProperty("repaired");
  });

  test("checks patterns with look-ahead", () => {
    const mail = { type: "string", pattern: "^(?!\\.)[a-z.]+@[a-z]+$" };
    expect(judgeJson('"a@b"', mail)).toBe(null);
    expect(judgeJson('".a@b"', mail)).toMatchObject({
      errors: expect.stringContaining("must match pattern") as unknown,
    });
  });
});

// Every error was described, and an answer can have a million: the text went into memory, the log and headers. Tests had one or two errors.
test("an answer with many errors is described by the first ones, each cut", () => {
  const few = checkJson(JSON.stringify(Array(20).fill("a")), { type: "array", items: { type: "number" } });
  expect(few?.split("; ")).toHaveLength(20);
  const many = checkJson(JSON.stringify(Array(10_000).fill("a")), { type: "array", items: { type: "number" } });
  expect(many?.split("; ").slice(19)).toEqual(["#/items/type must be number", "and 9980 more"]);
  const properties = { ["n".repeat(100_000)]: { type: "number" } };
  const long = checkJson(JSON.stringify({ ["n".repeat(100_000)]: "a" }), { type: "object", properties });
  expect(long).toHaveLength(303);
});
