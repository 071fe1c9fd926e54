import addFormats from "ajv-formats";
import fc from "fast-check";
import { Ajv2020, type AnySchema } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { Gbnf } from "../../../../test/support/gbnf.ts";
import { llamaGrammar } from "../../../../test/support/llama-grammar.ts";
import { schemaToGbnf } from "../../../../test/support/gbnf-of.ts";
import { boundedSchema } from "../../../../test/support/schemas.ts";
import type { JsonSchema } from "../../../wire/core/message.ts";
import { SchemaError } from "./grammar-errors.ts";
import { Grammar } from "./grammar.ts";
import { anyValue, jsonSyntax } from "./value-syntax.ts";
import { cpuMs } from "../../../../test/support/hang.ts";
import { runs } from "../../../../test/support/runs.ts";

const ajv = new Ajv2020({ strict: false, allErrors: false });
addFormats.default(ajv);

function grammarOf(schema: JsonSchema): Gbnf {
  return new Gbnf(schemaToGbnf(schema).gbnf);
}

/** Texts of a grammar, made with a seed. */
function walks(gbnf: string, count: number, seed: number): string[] {
  const grammar = new Gbnf(gbnf);
  let state = seed;
  const random = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
  return Array.from({ length: count }, () => grammar.walk(random));
}

function nested(depth: number): JsonSchema {
  let schema: JsonSchema = { type: "string" };
  for (let i = 0; i < depth; i++) schema = { type: "object", properties: { a: schema } };
  return schema;
}

function chain(length: number): JsonSchema {
  const $defs: Record<string, JsonSchema> = { [`d${length}`]: { type: "string" } };
  for (let i = 0; i < length; i++)
    $defs[`d${i}`] = { type: "object", properties: { n: { $ref: `#/$defs/d${i + 1}` } } };
  return { $ref: "#/$defs/d0", $defs };
}

function many(properties: number): Record<string, JsonSchema> {
  return Object.fromEntries(Array.from({ length: properties }, (_, i) => [`p${i}`, { type: "string" }]));
}

describe("the grammar of a schema", () => {
  // [schema, texts in the grammar, texts not in it]
  const cases: readonly (readonly [string, JsonSchema, readonly string[], readonly string[]])[] = [
    [
      "strings",
      { type: "string" },
      ['""', '"a\\n\\u00e9 \\ud83d\\ude00 ü😀"'],
      ["a", '"a', '"\n"', '"\\ud83d"', '"\\x"'],
    ],
    [
      "length counts characters",
      { type: "string", minLength: 2, maxLength: 3 },
      ['"ab"', '"\\ud83d\\ude00😀"', '"\\u0041bc"'],
      ['"a"', '"abcd"', '"\\ud83d\\ude00"'],
    ],
    [
      "long strings",
      { type: "string", minLength: 90, maxLength: 3000 },
      [JSON.stringify("x".repeat(90)), JSON.stringify("x".repeat(3000))],
      [JSON.stringify("x".repeat(89)), JSON.stringify("x".repeat(3001))],
    ],
    ["patterns match anywhere", { type: "string", pattern: "b+" }, ['"abc"', '"b"', '"\\"b\\n"'], ['""', '"ac"']],
    [
      "anchored patterns",
      { type: "string", pattern: '^[^"]\\\\\\d{2,}$' },
      ['"a\\\\12"'],
      ['"a\\\\1"', '"\\"\\\\12"', '" a\\\\12"'],
    ],
    [
      "patterns with lengths, and several",
      {
        allOf: [
          { type: "string", pattern: "^[a-z]([a-z0-9-]*[a-z0-9])?$", maxLength: 6 },
          { pattern: "-", minLength: 4 },
        ],
      },
      ['"a-b1"', '"ab-cd2"'],
      ['"a-b"', '"abcd"', '"abc-def"', '"-abc"', '"abc-"'],
    ],
    [
      "a format with a length and a pattern",
      { type: "string", format: "email", maxLength: 12, pattern: "@b\\.org$" },
      ['"a.c@b.org"'],
      ['"abcdefgh@b.org"', '"a@c.org"'],
    ],
    [
      "a pattern of one class with a length",
      { type: "string", pattern: "^[a-z]+$", maxLength: 3 },
      ['"a"', '"abc"'],
      ['""', '"abcd"'],
    ],
    ["integers", { type: "integer" }, ["0", "-17", "12"], ["01", "1.0", "-0.5", "+1", "1e3"]],
    [
      "integers in a range",
      { type: "integer", minimum: -12, exclusiveMaximum: 205 },
      ["-12", "-9", "0", "99", "204"],
      ["-13", "205", "1000", "-0"],
    ],
    ["bounds that are no integers", { type: "integer", minimum: 0.5, maximum: 2.5 }, ["1", "2"], ["0", "3"]],
    ["bounds on one side", { type: "integer", minimum: 1234 }, ["1234", "9999", "10000"], ["1233", "-5", "0"]],
    ["numbers", { type: "number" }, ["1", "-0.5", "1e-7", "12.25E+3"], [".5", "1.", "NaN", "01.5"]],
    [
      "decimals in a range",
      { type: "number", minimum: -1.5, exclusiveMaximum: 3.25 },
      ["-1.5", "-1.50", "0", "3.2", "3.249", "3.24999999999999"],
      ["-1.51", "3.25", "3.250", "4", "-2"],
    ],
    [
      "above zero",
      { type: "number", exclusiveMinimum: 0, maximum: 1 },
      ["0.1", "1", "1.0", "0.001"],
      ["0", "0.0", "1.1", "-1"],
    ],
    [
      "multiples",
      { type: "integer", multipleOf: 7, minimum: 10, maximum: 2000 },
      ["14", "1995", "1400"],
      ["7", "15", "2002"],
    ],
    ["multiples of a power of ten", { type: "integer", multipleOf: 1000 }, ["0", "-5000", "12000"], ["500", "0000"]],
    [
      "decimal multiples",
      { type: "number", multipleOf: 0.25, minimum: 0 },
      ["0", "1.25", "100.50", "7"],
      ["0.3", "1.5", "0.26"],
    ],
    ["enum", { enum: ["a", 1, null, { k: [true] }] }, ['"a"', "1", "null", '{"k":[true]}'], ['"b"', "2", "{}"]],
    [
      "enum within type and bounds",
      { type: ["integer", "string"], enum: ["a", 1, 9, null], maximum: 5 },
      ['"a"', "1"],
      ["9", "null"],
    ],
    ["const", { const: "é\n" }, ['"é\\n"'], ['"e"']],
    ["type arrays", { type: ["string", "null"], maxLength: 1 }, ["null", '"a"'], ["1", '"ab"']],
    ["nullable", { type: "integer", nullable: true }, ["null", "3"], ['""']],
    [
      "objects in order",
      {
        type: "object",
        properties: { a: { type: "integer" }, b: { type: "boolean" }, c: { type: "null" } },
        required: ["a", "c"],
      },
      ['{"a":1,"c":null}', '{"a": 1, "b": true, "c": null}', '{\n  "a": 1,\n  "c": null\n}'],
      ['{"a":1}', '{"c":null,"a":1}', '{"a":1,"c":null,"d":1}', '{"a":1,,"c":null}', '{ \n "a":1,"c":null}  '],
    ],
    [
      "all optional",
      { type: "object", properties: { a: { const: 1 }, b: { const: 2 } } },
      ["{}", '{"a":1}', '{"b":2}', '{"a":1,"b":2}'],
      ['{"b":2,"a":1}', '{,"b":2}'],
    ],
    [
      "additional by schema",
      { type: "object", properties: { ab: { const: 1 } }, additionalProperties: { type: "boolean" } },
      ['{"ab":1,"a":true,"abc":false}', '{"x\\n":true}'],
      ['{"ab":true}', '{"x":1}', '{"ab":1,"ab":true}', '{"\\u0061b":true}'],
    ],
    ["no additional", { type: "object", additionalProperties: false }, ["{}"], ['{"a":1}']],
    ["any object", { type: "object" }, ["{}", '{"a":{"b":[1,"x"]}}'], ["[]", '{"a"}']],
    [
      "counts of properties",
      { type: "object", properties: { a: true, b: true, c: true }, minProperties: 1, maxProperties: 2 },
      ['{"a":1}', '{"b":1,"c":2}'],
      ["{}", '{"a":1,"b":2,"c":3}'],
    ],
    [
      "pattern properties",
      { type: "object", patternProperties: { "^x-": { type: "integer" } }, additionalProperties: false },
      ["{}", '{"x-a":1}'],
      ['{"y":1}', '{"x-a":"1"}'],
    ],
    [
      "property names",
      { type: "object", propertyNames: { pattern: "^[a-z]+$" }, additionalProperties: { type: "integer" } },
      ['{"ab":1}'],
      ['{"AB":1}', '{"":1}'],
    ],
    ["required but not declared", { type: "object", required: ["a"] }, ['{"a":[]}', '{"a":1}'], ["{}"]],
    [
      "arrays",
      { type: "array", items: { type: "integer" }, minItems: 1, maxItems: 3 },
      ["[1]", "[1, 2,3]"],
      ["[]", "[1,2,3,4]", "[1,]"],
    ],
    [
      "tuples",
      { type: "array", prefixItems: [{ type: "integer" }, { type: "string" }], items: false, minItems: 1 },
      ["[1]", '[1,"a"]'],
      ["[]", '["a"]', '[1,"a",2]'],
    ],
    [
      "tuples of draft 7",
      { type: "array", items: [{ type: "integer" }], additionalItems: { type: "null" } },
      ["[]", "[1]", "[1,null,null]"],
      ["[null]"],
    ],
    ["anyOf", { anyOf: [{ type: "integer" }, { type: "string", const: "x" }] }, ["1", '"x"'], ['"y"']],
    [
      "anyOf next to other keywords",
      {
        type: "object",
        properties: { a: { const: 1 }, b: { const: 2 } },
        anyOf: [{ required: ["a"] }, { required: ["b"] }],
      },
      ['{"a":1}', '{"b":2}', '{"a":1,"b":2}'],
      ["{}"],
    ],
    ["oneOf", { oneOf: [{ const: 1 }, { const: 2 }] }, ["1", "2"], ["3"]],
    [
      "allOf of objects",
      {
        allOf: [
          { type: "object", properties: { a: { type: "integer", minimum: 5 } }, required: ["a"] },
          { properties: { a: { maximum: 6 }, b: { const: 1 } } },
        ],
      },
      ['{"a":5}', '{"a":6,"b":1}'],
      ['{"a":7}', "{}", '{"a":4}'],
    ],
    ["$ref with siblings", { $ref: "#/$defs/s", maxLength: 2, $defs: { s: { type: "string" } } }, ['"ab"'], ['"abc"']],
    [
      "recursion",
      {
        $ref: "#/definitions/node",
        definitions: {
          node: {
            type: "object",
            properties: { v: { type: "integer" }, next: { anyOf: [{ $ref: "#/definitions/node" }, { type: "null" }] } },
            required: ["v", "next"],
          },
        },
      },
      ['{"v":1,"next":null}', '{"v":1,"next":{"v":2,"next":null}}'],
      ['{"v":1}', '{"v":1,"next":{}}'],
    ],
    ["anchors", { $ref: "#n", $defs: { x: { $anchor: "n", const: 1 } } }, ["1"], ["2"]],
    ["a loop that says nothing", { anyOf: [{ $ref: "#" }, { const: 1 }] }, ["1"], ["2"]],
    [
      "recursion without exit is left out",
      { anyOf: [{ const: 1 }, { type: "object", properties: { a: { $ref: "#/anyOf/1" } }, required: ["a"] }] },
      ["1"],
      ['{"a":1}'],
    ],
    ["keywords without type", { properties: { a: { minimum: 3 } }, required: ["a"] }, ['{"a":3}'], ['{"a":2}', "1"]],
    [
      "unevaluatedProperties",
      { allOf: [{ properties: { a: true } }], unevaluatedProperties: false },
      ["{}", '{"a":1}'],
      ['{"b":1}'],
    ],
    ["true", true, ["1", "[{}]"], [""]],
    [
      "annotations",
      { title: "t", description: "d", default: 1, examples: [1], "x-y": 1, deprecated: true, type: "null" },
      ["null"],
      ["1"],
    ],
    ["int32 of OpenAPI", { type: "integer", format: "int32", minimum: 0 }, ["2147483647"], ["2147483648", "-1"]],
  ];

  it.each(cases)("%s", async (_, schema, accepted, rejected) => {
    const result = schemaToGbnf(schema);
    expect(result.widened).toEqual([]);
    const ours = new Gbnf(result.gbnf);
    const theirs = await llamaGrammar(result.gbnf);
    for (const text of accepted) expect([text, ours.accepts(text), theirs.accepts(text)]).toEqual([text, true, true]);
    for (const text of rejected) expect([text, ours.accepts(text), theirs.accepts(text)]).toEqual([text, false, false]);
  });

  it.each([
    "date",
    "time",
    "date-time",
    "duration",
    "uuid",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "url",
    "byte",
    "json-pointer",
    "iso-date-time",
  ])("writes only valid strings of format %s", async (format) => {
    const schema = { type: "string", format };
    const { gbnf, widened } = schemaToGbnf(schema);
    expect(widened).toEqual([]);
    const validate = ajv.compile(schema);
    const theirs = await llamaGrammar(gbnf);
    for (const [i, text] of walks(gbnf, 30, 7).entries()) {
      expect([text, validate(JSON.parse(text))]).toEqual([text, true]);
      if (i < 5) expect(theirs.accepts(text)).toBe(true);
    }
  });

  it("writes the common values of formats", () => {
    const common: Record<string, readonly string[]> = {
      date: ["2024-02-29", "1999-12-31"],
      "date-time": ["2026-11-21T01:02:03Z", "2026-11-21T01:02:03.123+02:00"],
      uuid: ["123e4567-e89b-12d3-a456-426614174000"],
      email: ["jane.doe+x@mail.example.org"],
      ipv4: ["192.168.0.255"],
      ipv6: ["::1", "2001:db8::8a2e:370:7334", "fe80::1", "::ffff:10.0.0.1", "1:2:3:4:5:6:7:8"],
      uri: [
        "https://example.org/a/b.html?q=1&r=%20#top",
        "urn:isbn:0451450523",
        "mailto:a@b.org",
        "http://localhost:8080",
      ],
      hostname: ["a", "www.example-site.org"],
    };
    for (const [format, values] of Object.entries(common)) {
      const grammar = grammarOf({ type: "string", format });
      for (const value of values) expect([value, grammar.accepts(JSON.stringify(value))]).toEqual([value, true]);
    }
  });

  it("names what it cannot hold, with its place", () => {
    const schema: JsonSchema = {
      type: "object",
      properties: {
        a: { not: { const: 1 } },
        b: { type: "array", items: { type: "string", format: "no-such" }, uniqueItems: true },
        c: { type: "string", pattern: "^(?!x)" },
        d: { type: "integer", multipleOf: 7919 },
        e: { type: "string", pattern: "^(ab)*$", minLength: 3000 },
      },
      if: { required: ["a"] },
    };
    const { widened, exact } = schemaToGbnf(schema, "tools[0].function.parameters");
    const at = "tools[0].function.parameters";
    expect(exact).toBe(false);
    expect(new Set(widened.map((gap) => `${gap.path} ${gap.keyword}`)).size).toBe(widened.length);
    expect(new Set(widened)).toEqual(
      new Set([
        { path: at, keyword: "if" },
        { path: `${at}.properties.a`, keyword: "not" },
        { path: `${at}.properties.b`, keyword: "uniqueItems" },
        { path: `${at}.properties.b.items`, keyword: "format" },
        { path: `${at}.properties.c`, keyword: "pattern" },
        { path: `${at}.properties.d`, keyword: "multipleOf" },
        { path: `${at}.properties.e`, keyword: "minLength" },
      ]),
    );
  });

  it.each<[string, JsonSchema, string]>([
    ["an unknown type", { properties: { a: { type: "str" } } }, "schema.properties.a.type"],
    ["a reference into nothing", { $ref: "#/$defs/no" }, "schema.$ref"],
    ["a reference to another document", { $ref: "https://example.org/schema" }, "schema.$ref"],
    ["properties that are no object", { type: "object", properties: [] }, "schema.properties"],
    ["a schema that is none", { items: 3 }, "schema.items"],
    ["a negative length", { type: "string", minLength: -1 }, "schema.minLength"],
    ["nothing allowed", { type: "string", enum: [1] }, "schema"],
    ["false", false, "schema"],
    ["recursion without exit", { type: "object", properties: { a: { $ref: "#" } }, required: ["a"] }, "schema"],
  ])("refuses %s", (_, schema, path) => {
    expect(() => schemaToGbnf(schema)).toThrow(SchemaError);
    try {
      schemaToGbnf(schema);
    } catch (error) {
      expect(error).toMatchObject({ path });
    }
  });

  it("refuses a schema that multiplies, soon", () => {
    const $defs: Record<string, JsonSchema> = { a0: { type: "string" } };
    for (let i = 1; i < 40; i++)
      $defs[`a${i}`] = { allOf: [{ $ref: `#/$defs/a${i - 1}` }, { $ref: `#/$defs/a${i - 1}` }] };
    expect(() => schemaToGbnf({ $ref: "#/$defs/a39", $defs })).toThrow(/too large/);
  });

  // The client's patterns used to run as RegExp: 30 characters blocked the server for 34 seconds, 55 for years.
  it.each<[string, JsonSchema]>([
    ["const", { const: `${"a".repeat(5000)}!`, pattern: "^(a+)+$" }],
    ["enum", { enum: [`${"a".repeat(5000)}!`], pattern: "^(a|a)*$" }],
    ["patternProperties", { properties: { [`${"a".repeat(5000)}!`]: {} }, patternProperties: { "^(a+)+$": false } }],
    ["propertyNames", { properties: { [`${"a".repeat(5000)}!`]: {} }, propertyNames: { pattern: "^(a+)+$" } }],
  ])("a pattern next to %s is decided without backtracking", (_place, schema) => {
    const spent = cpuMs(() => {
      try {
        schemaToGbnf(schema);
      } catch (error) {
        expect(error).toBeInstanceOf(SchemaError);
      }
    });
    expect(spent).toBeLessThan(5000);
  });

  it("lets values through where a pattern cannot be decided, and says so", () => {
    const { gbnf, widened } = schemaToGbnf({ enum: ["ab", "b"], pattern: "^(?=a)" });
    expect(new Gbnf(gbnf).accepts('"b"')).toBe(true);
    expect(widened).toEqual([{ path: "schema", keyword: "pattern" }]);
    const named = schemaToGbnf({ properties: { ab: {} }, patternProperties: { "^(?=a)": { type: "null" } } });
    expect(named.widened).toEqual([{ path: "schema", keyword: "patternProperties" }]);
  });

  // 8,000 values took 18 seconds: each was compared with every other.
  it("takes many values in time that grows as they do, as a tree", () => {
    const bestOf = (size: number): number => {
      const times = [1, 2, 3].map(() => {
        const schema = { enum: Array.from({ length: size }, (_, i) => `value-${(i * 7919) % size}`), pattern: "^v" };
        return cpuMs(() => expect(schemaToGbnf(schema).gbnf.length).toBeLessThan(2000));
      });
      return Math.min(...times);
    };
    // Twenty times as many; a comparison of each with every other would take four hundred times as long.
    expect(bestOf(100_000)).toBeLessThan(120 * bestOf(5000));
  });

  it.each<[string, JsonSchema, RegExp, RegExp]>([
    ["depth", nested(20_000), /^schema(\.properties\.a)+\.properties$/, /^nested deeper than 200 levels$/],
    ["a chain of references", chain(1000), /^schema(\.properties\.n)+$/, /^nested deeper than 200 levels$/],
    ["members", { properties: many(10_001) }, /^schema\.properties$/, /^more than 10000 members$/],
    ["rules", { properties: many(1000), maxProperties: 500 }, /^schema$/, /more than 20000 rules/],
    [
      "work",
      { enum: Array.from({ length: 1000 }, (_, i) => `${"a".repeat(1000)}${i}`), pattern: "^(a?){4000}$" },
      /^schema$/,
      /^the schema is too large: it takes more than 20000000 steps$/,
    ],
  ])("refuses too much %s, with the place and the limit", (_what, schema, path, message) => {
    let thrown: unknown;
    try {
      schemaToGbnf(schema);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(SchemaError);
    expect(thrown).toMatchObject({
      path: expect.stringMatching(path) as string,
      message: expect.stringMatching(message) as string,
    });
  });

  it("takes thousands of properties and of first items", () => {
    const properties = many(5000);
    const required = Object.keys(properties);
    for (const schema of [
      { type: "object", properties },
      { type: "object", properties, required },
      { type: "array", prefixItems: Object.values(properties) },
    ])
      expect(schemaToGbnf(schema).widened).toEqual([]);
  });

  it("reports when a oneOf was read as anyOf", () => {
    expect(schemaToGbnf({ oneOf: [{ type: "integer" }, { type: "number" }] }).exact).toBe(false);
    expect(schemaToGbnf({ anyOf: [{ type: "integer" }, { type: "number" }] }).exact).toBe(true);
  });

  it("writes nothing but valid values, whatever the schema", () => {
    fc.assert(
      fc.property(boundedSchema(), fc.integer({ min: 1, max: 2 ** 30 }), ({ schema }, seed) => {
        const { gbnf, widened } = schemaToGbnf(schema);
        expect(widened).toEqual([]);
        const validate = ajv.compile(schema as AnySchema);
        for (const text of walks(gbnf, 5, seed)) {
          if (!validate(JSON.parse(text))) throw new Error(`${text}\n${JSON.stringify(validate.errors)}`);
        }
      }),
      runs(12),
    );
  });

  it("takes every value that is written in the schema's order", () => {
    fc.assert(
      fc.property(
        boundedSchema().chain(({ schema, value }) => fc.tuple(fc.constant(schema), value)),
        ([schema, value]) => {
          const validate = ajv.compile(schema as AnySchema);
          expect(validate(value)).toBe(true);
          const grammar = grammarOf(schema);
          for (const text of [JSON.stringify(value), JSON.stringify(value, null, 2)]) {
            if (!grammar.accepts(text)) throw new Error(`not in the grammar: ${text}\n${JSON.stringify(schema)}`);
          }
        },
      ),
      runs(12),
    );
  });

  it("is taken by llama.cpp, whatever the schema", async () => {
    await fc.assert(
      fc.asyncProperty(boundedSchema(), fc.integer({ min: 1, max: 2 ** 30 }), async ({ schema }, seed) => {
        const { gbnf } = schemaToGbnf(schema);
        const theirs = await llamaGrammar(gbnf);
        for (const text of walks(gbnf, 2, seed)) if (!theirs.accepts(text)) throw new Error(text);
      }),
      runs(12),
    );
  });
});

describe("any JSON object", () => {
  it("takes objects and nothing else", async () => {
    const made = new Grammar();
    const grammar = await llamaGrammar(made.toGbnf(anyValue(made, jsonSyntax(made), "object")));
    for (const text of ["{}", '{"a":1}', '{\n  "a": [1, {"b": null}],\n  "c": "x"\n}'])
      expect(grammar.accepts(text)).toBe(true);
    for (const text of ["[]", "1", '{"a"}', '{"a":1} ', "{} {}"]) expect(grammar.accepts(text)).toBe(false);
  });
});
