import { expect, test } from "vitest";
import { llamaSchemaRefusal } from "../doubles/llama-schema.ts";
import { growthOf, maxGrowth } from "../support/growth.ts";

/*
 * The CPU time of the double that reads JSON schemas as llama.cpp does grows linearly with each shape of a schema. It took quadratic time
 * for a list of types: each type had a copy of the schema, with the same properties.
 */

const times = <Made>(n: number, make: (at: number) => Made): Made[] => Array.from({ length: n }, (_, at) => make(at));
const members = <Made>(n: number, make: (at: number) => Made): Record<string, Made> =>
  Object.fromEntries(times(n, (at) => [`m_${at}`, make(at)]));
const pattern = (text: string): object => ({ type: "string", pattern: `^${text}$` });

/** A schema in a schema, `n` times; not deeper than a stack of calls. */
function nested(n: number, around: (inner: object) => object): object {
  let schema: object = { type: "string" };
  for (let depth = 0; depth < Math.min(n, 500); depth++) schema = around(schema);
  return { type: "object", properties: members(Math.ceil(n / 500), () => schema) };
}

const shapes: Readonly<Record<string, (n: number) => unknown>> = {
  properties: (n) => ({ type: "object", properties: members(n, () => ({ type: "string" })) }),
  "nested properties": (n) => nested(n, (inner) => ({ type: "object", properties: { a: inner } })),
  "nested items": (n) => nested(n, (items) => ({ type: "array", items })),
  "a list of types and properties": (n) => ({
    type: times(n, () => "object"),
    properties: members(n, () => ({ type: "string" })),
  }),
  alternatives: (n) => ({ anyOf: times(n, () => ({ const: 1 })) }),
  enum: (n) => ({ enum: times(n, (at) => at) }),
  "the same reference": (n) => ({
    $defs: { a: { type: "object", properties: members(n, () => ({ type: "string" })) } },
    anyOf: times(n, () => ({ $ref: "#/$defs/a" })),
  }),
  "references that follow each other": (n) => ({
    $defs: members(n, (at) => (at % 400 === 399 ? { type: "string" } : { $ref: `#/$defs/m_${at + 1}` })),
    anyOf: times(Math.ceil(n / 400), (at) => ({ $ref: `#/$defs/m_${at * 400}` })),
  }),
  patterns: (n) => ({ type: "object", properties: members(n, () => pattern("[a-z]+")) }),
  "a long pattern": (n) => pattern("a".repeat(n)),
  "groups in a pattern": (n) => pattern("(a|b)*".repeat(n)),
  "alternatives in a pattern": (n) => pattern("a|".repeat(n)),
  "classes that are not closed": (n) => pattern("[".repeat(n)),
  "counts in a pattern": (n) => pattern("a{1,2}".repeat(n)),
  "counts that are not closed": (n) => pattern("a{1".repeat(n)),
  "escapes in a pattern": (n) => pattern(String.raw`\u0041`.repeat(n)),
  "patterns that are wrong": (n) => ({ type: "object", properties: members(n, () => pattern("(a")) }),
};

test.each(Object.entries(shapes))("llama.cpp's schemas: %s", (_, shape) => {
  const growth = growthOf((size) => {
    const schema = shape(size);
    return () => llamaSchemaRefusal([schema]);
  });
  expect(growth).toBeLessThan(maxGrowth);
});
