import { expect, test } from "vitest";
import { itemOf, ToolTypes, typedValue } from "./tool-types.ts";

// The first items had no type, so that the text "+6" of an item that is a string was read as the number 6.
test("an array's first items have their own schemas, in both drafts", () => {
  const [text, number] = [{ type: "string" }, { type: "number" }];
  const typesOf = (schema: object): unknown[] => [0, 1, 2].map((index) => itemOf(schema, index, schema));
  expect(typesOf({ prefixItems: [text, text], items: number })).toEqual([text, text, number]);
  expect(typesOf({ items: [text, text], additionalItems: number })).toEqual([text, text, number]);
  expect(typesOf({ items: [text] })).toEqual([text, undefined, undefined]);
  expect(typesOf({ anyOf: [{ type: "null" }, { items: text }] })).toEqual([text, text, text]);
});

// Each alternative was followed without end, which ended in a stack overflow while an answer was read.
test("a schema that is an alternative of itself declares nothing", () => {
  const types = new ToolTypes([{ name: "f", parameters: { allOf: [{ $ref: "#" }] } }]);
  expect(types.parameter("f", "a")).toBeUndefined();
});

// The text "1" of a parameter that may be 0 or "1" was read as the number 1, which it may not be.
test("a text that is listed is itself, where what it can be read as is not listed", () => {
  const read = (text: string, ...listed: unknown[]): unknown => {
    const schema = { type: "object", properties: { a: { enum: listed } } };
    return JSON.parse(typedValue(text, new ToolTypes([{ name: "f", parameters: schema }]).parameter("f", "a")));
  };
  expect(read("1", 0, "1")).toBe("1");
  expect(read("0", 0, "1")).toBe(0);
  expect(read("1", 1, "1")).toBe(1);
  expect(read("null", "null", 2)).toBe("null");
});

// `#name` was taken for the root, and %20 stood in the way of a name with a space: "7" of a string was read as a number.
test("references are found by an anchor, an id, and an escaped path", () => {
  const $defs = {
    "a b": { type: "string" },
    c: { $anchor: "city", type: "string" },
    d: { $id: "#old", type: "string" },
  };
  for (const $ref of ["#/$defs/a%20b", "#city", "#old"]) {
    const parameters = { type: "object", properties: { a: { $ref } }, $defs };
    const declared = new ToolTypes([{ name: "f", parameters }]).parameter("f", "a");
    expect([...(declared?.types ?? [])]).toEqual(["string"]);
    expect(typedValue("7", declared)).toBe('"7"');
  }
  const unknown = { type: "object", properties: { a: { $ref: "#nowhere" } } };
  expect(new ToolTypes([{ name: "f", parameters: unknown }]).parameter("f", "a")?.types.size ?? 0).toBe(0);
});
