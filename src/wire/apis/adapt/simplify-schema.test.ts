import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { llamaRefusal } from "../../../../test/doubles/llama-grammar.ts";
import { llamaSchemaRefusal } from "../../../../test/doubles/llama-schema.ts";
import { llguidanceRefusal } from "../../../../test/doubles/llguidance.ts";
import { xgrammarRefusal } from "../../../../test/doubles/xgrammar.ts";
import { looseSchemas, simplifySchema } from "./simplify-schema.ts";
import { runs } from "../../../../test/support/runs.ts";

const llama = { schemaCompiler: "llama.cpp" } as const;
const forLlama = (schema: unknown) => simplifySchema(schema, false, llama);

describe("for llama.cpp", () => {
  test("a schema that it compiles is sent as it is", () => {
    const schema = {
      type: "object",
      properties: { a: { type: "string", pattern: "^[a-z]+$" }, b: { $ref: "#/$defs/b" } },
      $defs: { b: { type: "array", items: { $ref: "#/$defs/b" } } },
    };
    expect(forLlama(schema)).toEqual({ schema, isLooser: false });
    expect(forLlama(schema).schema).toBe(schema);
  });

  // One tool of a server for mail, with zod's pattern for addresses, took all tools down: https://github.com/codefuturist/email-mcp/issues/58
  test("a pattern with look-ahead becomes a part of the description", () => {
    const pattern = "^(?!\\.)(?!.*\\.\\.)([a-z]+)@([a-z]+)$";
    const { schema, isLooser } = forLlama({ type: "string", description: "Who.", pattern });
    expect(isLooser).toBe(true);
    expect(schema).toEqual({ type: "string", description: `Who. JSON Schema: ${JSON.stringify({ pattern })}` });
  });

  test.each([
    ["a reference to itself", { type: "object", properties: { child: { $ref: "#" } } }],
    ["an anchor", { properties: { a: { $ref: "#a" } }, $defs: { a: { $anchor: "a", type: "string" } } }],
    ["another document", { $ref: "https://example.com/schema.json" }],
    ["an escaped pointer", { properties: { a: { $ref: "#/$defs/a~1b" } }, $defs: { "a/b": { type: "string" } } }],
    ["a pointer to nothing", { $ref: "#/$defs/none" }],
    ["true", { properties: { a: true } }],
    ["false", { properties: { a: false }, anyOf: [false, { type: "string" }] }],
    ["a type that does not exist", { type: "int" }],
    ["a class in a pattern", { type: "string", pattern: "^\\d{4}$" }],
    ["a pattern without anchors", { type: "string", pattern: "a" }],
    ["many characters", { type: "string", maxLength: 2000 }],
    ["many characters in many items", { type: "array", maxItems: 50, items: { type: "string", maxLength: 60 } }],
    ["a format that is a list", { type: "string", format: ["date"] }],
  ])("%s: it is refused before, and taken after", (_, schema) => {
    expect(llamaRefusal(schema)).toBeDefined();
    expect(llamaRefusal(forLlama(schema).schema)).toBeUndefined();
    expect(llamaSchemaRefusal([forLlama(schema).schema])).toBeUndefined();
  });

  // Servers of MCP send such schemas, and llama.cpp passed over them up to 2026-07.
  test.each([
    ["an empty enum", { enum: [] }],
    ["no alternatives", { anyOf: [] }],
    ["alternatives that are no list", { type: "object", allOf: {} }],
    ["a property that is no schema", { type: "object", properties: { a: "text" } }],
    ["properties that are a list", { type: "object", properties: [] }],
    ["additionalProperties: null", { type: "object", additionalProperties: null }],
    ["a bound that is null", { type: "integer", minimum: null }],
    ["a length that is a text", { type: "string", maxLength: "20" }],
    ["a negative count", { type: "array", minItems: -1 }],
    ["items that are a text", { type: "array", items: "string" }],
    ["a reference that is null", { properties: { a: { $ref: null } } }],
    ["a pattern that is no regular expression", { type: "string", pattern: "^(a$" }],
  ])("%s: it is refused before, and taken after", (_, schema) => {
    expect(llamaSchemaRefusal([schema])).toBeDefined();
    expect(llamaSchemaRefusal([forLlama(schema).schema])).toBeUndefined();
  });

  test("a reference that contains itself is followed twice", () => {
    const { schema } = forLlama({ type: "object", properties: { child: { $ref: "#" } } });
    const depth = (JSON.stringify(schema).match(/child/g) ?? []).length;
    expect(depth).toBe(3);
  });

  // Each level refers twice to the next one: 2 to the power of 40 schemas.
  test("references that multiply are bounded", () => {
    const defs = Object.fromEntries(
      Array.from({ length: 40 }, (_, at) => [
        `d/${at}`,
        { properties: { a: { $ref: `#/$defs/d~1${at + 1}` }, b: { $ref: `#/$defs/d~1${at + 1}` } } },
      ]),
    );
    const { schema, isLooser } = forLlama({ $ref: "#/$defs/d~10", $defs: defs });
    expect(isLooser).toBe(true);
    expect(JSON.stringify(schema).length).toBeLessThan(1_000_000);
    expect(llamaRefusal(schema)).toBeUndefined();
  });

  test("properties with the names of keywords are no keywords", () => {
    const schema = { type: "object", properties: { pattern: { type: "string" }, $ref: { type: "string" } } };
    expect(forLlama(schema).schema).toBe(schema);
    const hostile = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"int"}}}') as unknown;
    expect(JSON.stringify(forLlama(hostile).schema)).toContain('"__proto__":{"type":["string"');
  });
});

test("for xgrammar, what vLLM lists as unsupported is left out", () => {
  const schema = {
    type: "object",
    properties: {
      n: { type: "number", multipleOf: 2 },
      list: { type: "array", items: { type: "string" }, uniqueItems: true },
      host: { type: "string", format: "regex", minLength: 1 },
      word: { type: "string", pattern: "^\\bx(?=y)", maxLength: 3 },
    },
    patternProperties: { "^x": { type: "string" } },
  };
  expect(xgrammarRefusal(schema)).toBeDefined();
  expect(xgrammarRefusal(simplifySchema(schema, false, { schemaCompiler: "xgrammar" }).schema)).toBeUndefined();
});

// vLLM 0.32 refused uniqueItems in the words of llguidance, from which nothing was learned.
test("for llguidance, what it does not implement is left out", () => {
  const schema = {
    type: "object",
    properties: {
      list: { type: "array", items: { type: "string", format: "regex" }, uniqueItems: true },
      word: { type: "string", pattern: "^\\bx(?=y)", maxLength: 3 },
      other: { not: { type: "null" }, minProperties: 1 },
      whole: { type: "object", properties: { a: { type: "string" } }, required: ["a"], maxProperties: 1 },
    },
    dependentRequired: { list: ["word"] },
  };
  const { schema: simple, isLooser } = simplifySchema(schema, false, { schemaCompiler: "llguidance" });
  expect(llguidanceRefusal(schema)).toBeDefined();
  expect(llguidanceRefusal(simple)).toBeUndefined();
  expect(isLooser).toBe(true);
  expect(simple).toMatchObject({ properties: { whole: schema.properties.whole, word: { maxLength: 3 } } });
});

test("for OpenAI's strict schemas, optional properties may be null", () => {
  const schema = { type: "object", properties: { a: { type: "string" }, b: { type: "number" } }, required: ["a"] };
  const profile = { schemaCompiler: "openai-strict" } as const;
  expect(simplifySchema(schema, false, profile).schema).toBe(schema);
  expect(simplifySchema(schema, true, profile)).toEqual({
    schema: {
      type: "object",
      properties: { a: { type: "string" }, b: { anyOf: [{ type: "number" }, { type: "null" }] } },
      required: ["a", "b"],
      additionalProperties: false,
    },
    isLooser: true,
  });
});

test("a plain schema has no references and no keywords but the common ones", () => {
  const schema = {
    type: "object",
    properties: { a: { $ref: "#/$defs/a" }, b: { oneOf: [{ type: "string" }] } },
    $defs: { a: { type: "string", format: "date" } },
  };
  expect(simplifySchema(schema, false, { schemaCompiler: "plain" }).schema).toEqual({
    type: "object",
    properties: {
      a: { type: "string", description: 'JSON Schema: {"format":"date"}' },
      b: {
        description: 'JSON Schema: {"oneOf":[{"type":"string"}]}',
        type: ["string", "number", "boolean", "object", "array", "null"],
      },
    },
  });
});

test("keywords that the configuration lists are left out, and answers to them are checked", () => {
  const parameters = { type: "object", properties: { a: { type: "string", format: "date" } } };
  const request = {
    id: "r",
    model: "m",
    prompt: { kind: "chat", messages: [], template: {} },
    tools: [{ name: "day", parameters }, { name: "now" }],
    sampling: {},
    limits: {},
    wantsUsage: false,
    stream: false,
    extra: {},
  } as const;
  expect(looseSchemas(request, {})).toBe(null);
  expect(looseSchemas(request, { refusedKeywords: ["uniqueItems"] })).toBe(null);
  expect(looseSchemas(request, { refusedKeywords: ["format"] })).toEqual({ tools: new Map([["day", parameters]]) });
  expect(looseSchemas(request, { refusedKeywords: ["format"], adapt: { "simple-schema": false } })).toBe(null);
});

/** Schemas of all keywords, well formed or not. */
const anySchema: fc.Arbitrary<unknown> = fc.letrec<{ schema: unknown }>((tie) => ({
  schema: fc.oneof(
    { depthSize: "small" },
    fc.boolean(),
    fc.record(
      {
        type: fc.constantFrom("string", "integer", "object", "array", "int", ["string", "null"]),
        pattern: fc.constantFrom("^a$", "a", "^(?=a)$", "^\\d+$", "^a|b$", "^*$", "^a{1,9000}$"),
        format: fc.constantFrom("date", "regex", "email"),
        $ref: fc.constantFrom("#", "#/$defs/a", "#/$defs/none", "#a", "http://x"),
        minLength: fc.oneof(fc.nat(3000), fc.constantFrom(-1, "2", null)),
        maxItems: fc.oneof(fc.nat(3000), fc.constant(1.5)),
        maximum: fc.constantFrom(1, null, "1"),
        uniqueItems: fc.boolean(),
        multipleOf: fc.constant(3),
        enum: fc.constantFrom<unknown[]>(["a"], []),
      },
      { requiredKeys: [] },
    ),
    fc.record(
      {
        properties: fc.dictionary(fc.constantFrom("a", "b", "__proto__", "pattern"), tie("schema"), { maxKeys: 3 }),
        patternProperties: fc.dictionary(fc.constantFrom("^a", "b"), tie("schema"), { maxKeys: 2 }),
        additionalProperties: tie("schema"),
        $defs: fc.record({ a: tie("schema") }),
        items: tie("schema"),
        anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }),
        allOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
        not: tie("schema"),
        propertyNames: tie("schema"),
      },
      { requiredKeys: [] },
    ),
  ),
})).schema;

test("for every schema, what is sent is taken, and is what would be sent for it", () => {
  fc.assert(
    fc.property(
      anySchema.filter((schema) => typeof schema === "object"),
      (schema) => {
        const { schema: simple } = forLlama(schema);
        expect(llamaRefusal(simple)).toBeUndefined();
        expect(llamaSchemaRefusal([simple])).toBeUndefined();
        expect(JSON.stringify(forLlama(simple).schema)).toBe(JSON.stringify(simple));
        expect(xgrammarRefusal(simplifySchema(schema, false, { schemaCompiler: "xgrammar" }).schema)).toBeUndefined();
      },
    ),
    runs(150),
  );
});
