import { expect, test } from "vitest";
import { checkGoTypes } from "./go-decoder.ts";
import { ollamaChatRequest, ollamaGenerateRequest } from "./request-schema.ts";

const field = "Go struct field";
const tool = (parameters: unknown): object => ({ tools: [{ function: { name: "f", parameters } }] });
const call = (members: object): object => ({ messages: [{ tool_calls: [{ function: { name: "f", ...members } }] }] });
const properties = `${field} ToolFunctionParameters.tools.function.parameters.properties`;

function said(body: unknown): string | undefined {
  try {
    checkGoTypes(ollamaChatRequest, body);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

// The words of Ollama 0.17.4, which was asked.
test.each<[unknown, string | undefined]>([
  [[], "json: cannot unmarshal array into Go value of type api.ChatRequest"],
  [{ stream: "yes" }, `json: cannot unmarshal string into ${field} ChatRequest.stream of type bool`],
  [{ top_logprobs: 1.5 }, `json: cannot unmarshal number 1.5 into ${field} ChatRequest.top_logprobs of type int`],
  [{ messages: "Hi" }, `json: cannot unmarshal string into ${field} ChatRequest.messages of type []api.Message`],
  [{ messages: ["Hi"] }, `json: cannot unmarshal string into ${field} ChatRequest.messages of type api.Alias`],
  [{ messages: [{ role: 1 }] }, `json: cannot unmarshal number into ${field} ChatRequest.messages.role of type string`],
  [{ messages: [{ images: ["AAA"] }] }, "illegal base64 data at input byte 0"],
  [{ messages: [{ images: ["AA-A"] }] }, "illegal base64 data at input byte 2"],
  [call({ arguments: "{}" }), "Value looks like object, but can't find closing '}' symbol"],
  [
    call({ index: "0" }),
    `json: cannot unmarshal string into ${field} ChatRequest.messages.tool_calls.function.index of type int`,
  ],
  [{ tools: {} }, `json: cannot unmarshal object into ${field} ChatRequest.tools of type api.Tools`],
  [
    tool({ required: "a" }),
    `json: cannot unmarshal string into ${field} ToolFunctionParameters.tools.function.parameters.required of type []string`,
  ],
  [tool({ properties: { a: true } }), `json: cannot unmarshal bool into ${properties} of type api.ToolProperty`],
  [tool({ properties: { a: { type: 1 } } }), `json: cannot unmarshal number into ${properties}.type of type []string`],
  [
    tool({ properties: { a: { anyOf: [{ enum: "b" }] } } }),
    `json: cannot unmarshal string into ${properties}.anyOf.enum of type []interface {}`,
  ],
  [{ options: [] }, `json: cannot unmarshal array into ${field} ChatRequest.options of type map[string]interface {}`],
  [{ think: "much" }, 'invalid think value: "much" (must be "high", "medium", "low", "max", true, or false)'],
  [{ keep_alive: "5" }, 'time: missing unit in duration "5"'],
  [{ keep_alive: [] }, "Unsupported type: '[]interface {}'"],
  // The first one of the body.
  [{ logprobs: 1, stream: 1 }, `json: cannot unmarshal number into ${field} ChatRequest.logprobs of type bool`],
  [
    { messages: null, unknown: 1, think: "high", keep_alive: -1, format: 7, ...tool({ properties: { a: {} } }) },
    undefined,
  ],
])("Go's words for %j", (body, words) => {
  expect(said(body)).toBe(words);
});

test("a schema of any depth is read", () => {
  let property: unknown = {};
  for (let depth = 0; depth < 50_000; depth++) property = { properties: { a: property } };
  expect(() => checkGoTypes(ollamaChatRequest, tool(property))).not.toThrow();
  expect(() => checkGoTypes(ollamaGenerateRequest, { context: [1, 2] })).not.toThrow();
});
