import { expect, test } from "vitest";
import { definitionOf, toolIn } from "./tool.ts";

const schema = { type: "object", properties: { city: { type: "string" } } };
const parameters = JSON.stringify(schema, null, 2);

test.each([
  ["OpenAI's form", { type: "function", function: { name: "f", description: "d", parameters: schema } }],
  ["the function alone, as in Responses", { type: "function", name: "f", description: "d", parameters: schema }],
  ["Anthropic's form", { name: "f", description: "d", input_schema: schema }],
])("a pasted tool in %s", (_, tool) => {
  expect(toolIn(JSON.stringify(tool))).toEqual({ name: "f", description: "d", parameters });
});

test("a pasted schema is the parameters; its title is the name", () => {
  expect(toolIn(parameters)).toEqual({ parameters });
  expect(toolIn(JSON.stringify({ title: "f", ...schema }))).toMatchObject({ name: "f" });
});

test("anything else is no tool", () => {
  for (const text of ["", "words", "[1]", "null", "7"]) expect(toolIn(text)).toBeUndefined();
});

const tool = { id: 1, name: " f ", description: " ", parameters: "", canned: "x" };

test("the definition has what was entered and no more", () => {
  expect(definitionOf(tool)).toEqual({ type: "function", function: { name: "f" } });
  expect(definitionOf({ ...tool, parameters })).toEqual({
    type: "function",
    function: { name: "f", parameters: schema },
  });
});

test("what is missing is told in words", () => {
  expect(() => definitionOf({ ...tool, name: " " })).toThrow("a tool has no name");
  expect(() => definitionOf({ ...tool, parameters: "{" })).toThrow("the parameters of the tool  f  are no valid JSON");
});
