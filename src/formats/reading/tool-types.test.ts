import { expect, test } from "vitest";
import { itemOf, ToolTypes } from "./tool-types.ts";

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
