import fc from "fast-check";
import { expect, test } from "vitest";
import type { Tool, ToolChoice } from "../../wire/core/message.ts";
import { fromOpenAiToolChoice, fromOpenAiTools, toOpenAiToolChoice, toOpenAiTools } from "./openai-tools.ts";
import { fromToolDefinition, toToolDefinition } from "./tool-definition.ts";
import type { ParameterDefinition, ToolDefinition } from "./tool-definition.ts";

const name = fc.stringMatching(/^[a-z]{1,8}$/);
const schema = fc.record(
  {
    type: fc.constant("object"),
    properties: fc.dictionary(name, fc.record({ type: fc.constantFrom("string", "integer"), default: fc.jsonValue() })),
  },
  { requiredKeys: ["type"] },
);
const tool: fc.Arbitrary<Tool> = fc.oneof(
  fc.record({ name, description: fc.string(), parameters: schema, strict: fc.boolean() }, { requiredKeys: ["name"] }),
  fc.record(
    { name, description: fc.string(), kind: fc.constant("custom" as const) },
    { requiredKeys: ["name", "kind"] },
  ),
);

test("tools survive the way to OpenAI's form and back", () => {
  fc.assert(
    fc.property(fc.array(tool, { maxLength: 5 }), (tools) => {
      const written: unknown[] = JSON.parse(JSON.stringify(toOpenAiTools(tools)));
      expect(fromOpenAiTools(written)).toEqual(JSON.parse(JSON.stringify(tools)));
    }),
  );
});

test.each<ToolChoice>([
  { type: "none" },
  { type: "auto" },
  { type: "required" },
  { type: "named", name: "f" },
  { type: "named", name: "free" },
  { type: "allowed", mode: "required", names: ["f", "free"] },
])("the choice $type survives, a custom tool's name included", (choice) => {
  const tools: Tool[] = [{ name: "f" }, { name: "free", kind: "custom" }];
  expect(fromOpenAiToolChoice(toOpenAiToolChoice(choice, tools), tools)).toEqual(choice);
});

test("a choice of a tool that is not there is refused", () => {
  const choice = { type: "function", function: { name: "g" } };
  expect(() => fromOpenAiToolChoice(choice, [{ name: "f" }])).toThrow(/no function named 'g'/);
});

const parameter: fc.Arbitrary<ParameterDefinition> = fc.record(
  {
    type: fc.constantFrom("int", "float", "bool", "str", "list", "dict"),
    description: fc.string(),
    required: fc.constant(false as const),
    default: fc.constantFrom<unknown>(0, false, "", null, "x", [], {}),
    keywords: fc.record({ enum: fc.array(fc.integer(), { minLength: 1 }) }),
  },
  { requiredKeys: ["type"] },
);
const definition: fc.Arbitrary<ToolDefinition> = fc.record(
  {
    name,
    description: fc.string(),
    parameters: fc.dictionary(fc.oneof(name, fc.constantFrom("constructor", "toString")), parameter),
    keywords: fc.constant({ additionalProperties: false }),
    strict: fc.boolean(),
  },
  { requiredKeys: ["name", "parameters"] },
);

test("a definition becomes a tool and comes back the same, falsy defaults included", () => {
  fc.assert(
    fc.property(definition, (one) => {
      expect(toToolDefinition(fromToolDefinition(one))).toEqual(one);
    }),
  );
});

test("each parameter type has its JSON Schema type", () => {
  const types = ["int", "float", "bool", "str", "list", "dict"] as const;
  const parameters = Object.fromEntries(types.map((type) => [type, { type }]));
  const { properties } = fromToolDefinition({ name: "f", parameters }).parameters as {
    properties: Record<string, { type: string }>;
  };
  expect(Object.values(properties).map(({ type }) => type)).toEqual([
    "integer",
    "number",
    "boolean",
    "string",
    "array",
    "object",
  ]);
});

test("what a schema says beyond a type comes back, too", () => {
  const parameters = {
    type: "object",
    properties: {
      either: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
      several: { type: ["string", "null"] },
      list: { type: "array", items: { type: "integer" } },
    },
    required: ["list"],
    additionalProperties: false,
    $defs: { a: {} },
  };
  expect(fromToolDefinition(toToolDefinition({ name: "f", parameters })).parameters).toEqual(parameters);
});

test("a type that is none is an error with its path", () => {
  const parameters = { x: { type: "complex" as "int" } };
  expect(() => fromToolDefinition({ name: "f", parameters })).toThrow("Unsupported parameter type: complex");
});

test.each<Tool>([
  { name: "f", kind: "custom" },
  { name: "f", parameters: true },
  { name: "f", parameters: { type: "array" } },
])("a tool without listable parameters is refused: %j", (tool) => {
  expect(() => toToolDefinition(tool)).toThrow("could be listed");
});
