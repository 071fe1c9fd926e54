import { describe, expect, test } from "vitest";
import type { GenerationFailure } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";
import type { ReadOptions } from "../port.ts";
import { exact } from "../profile.ts";
import { readChatRequest } from "./request.ts";

// What OpenAI refuses is refused in its words (recordings of 2025 and 2026).

const hello = { role: "user", content: "Hello" };
const tool = { type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } };

function read(members: object, options?: ReadOptions): void {
  readChatRequest({ model: "m", messages: [hello], ...members }, "req_1", options);
}

function refusal(members: object, options?: ReadOptions): Pick<GenerationFailure, "message" | "param" | "code"> {
  try {
    read(members, options);
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    const { status, kind, message, param, code } = error.failure;
    expect({ status, kind }).toEqual({ status: 400, kind: "invalid-request" });
    return { message, param: param ?? null, code: code ?? null };
  }
  throw new Error("The request was taken.");
}

const user = (content: unknown): object => ({ messages: [hello, { role: "user", content }] });
const format = (value: object): object => ({ response_format: { type: "json_schema", json_schema: value } });

test.each<[path: string, members: object]>([
  ["messages", { messages: undefined }],
  ["messages[0].role", { messages: [{ content: "x" }] }],
  ["messages[1].content[0].type", user([{ text: "x" }])],
  ["messages[1].content[0].text", user([{ type: "text" }])],
  ["messages[1].content[0].image_url.url", user([{ type: "image_url", image_url: {} }])],
  ["messages[1].tool_call_id", { messages: [hello, { role: "tool", content: "x" }] }],
  [
    "messages[0].tool_calls[0].function.arguments",
    { messages: [{ role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "f" } }] }] },
  ],
  ["tool_choice.function.name", { tools: [tool], tool_choice: { type: "function", function: {} } }],
  ["tools[0].type", { tools: [{ function: { name: "f" } }] }],
  ["tools[1].function.name", { tools: [tool, { type: "function", function: {} }] }],
  ["response_format.json_schema.schema", format({ name: "a" })],
])("missing: %s", (path, members) => {
  const message = `Missing required parameter: '${path}'.`;
  expect(refusal(members)).toEqual({ message, param: path, code: "missing_required_parameter" });
});

test.each<[path: string, members: object, expected: string, got: string]>([
  ["messages", { messages: null }, "an array of objects", "null"],
  ["messages", { messages: "hi" }, "an array of objects", "a string"],
  ["messages[1]", { messages: [hello, 3] }, "an object", "an integer"],
  ["messages[1].content", user({}), "one of a string or array of objects", "an object"],
  ["temperature", { temperature: "1" }, "a decimal", "a string"],
  ["max_tokens", { max_tokens: "5" }, "an integer", "a string"],
  ["max_completion_tokens", { max_completion_tokens: 1.5 }, "an integer", "a decimal number"],
  ["seed", { seed: 0.5 }, "an integer", "a decimal number"],
  ["seed", { seed: [] }, "an integer", "an array"],
  ["stream", { stream: "yes" }, "a boolean", "a string"],
  ["stop", { stop: 3 }, "one of a string or array of strings", "an integer"],
  ["stop[1]", { stop: ["a", 3] }, "a string", "an integer"],
  ["metadata.a", { metadata: { a: 1 } }, "a string", "an integer"],
  ["response_format", { response_format: "json" }, "an object", "a string"],
  ["tools[0]", { tools: ["f"] }, "an object", "a string"],
  ["messages[0].content[0]", { messages: [{ role: "user", content: ["x"] }] }, "an object", "a string"],
  ["tool_choice", { tools: [tool], tool_choice: 3 }, "one of a string or object", "an integer"],
  ["verbosity", { verbosity: 3 }, "one of 'low', 'medium', or 'high'", "an integer"],
  ["chat_template_kwargs", { chat_template_kwargs: [] }, "an object", "an array"],
])("of another type: %s", (path, members, expected, got) => {
  const message = `Invalid type for '${path}': expected ${expected}, but got ${got} instead.`;
  expect(refusal(members)).toEqual({ message, param: path, code: "invalid_type" });
});

test.each<[path: string, members: object, value: string, supported: string]>([
  [
    "messages[0].role",
    { messages: [{ role: "robot", content: "x" }] },
    "robot",
    "'system', 'assistant', 'user', 'function', 'tool', and 'developer'",
  ],
  ["messages[1].content[0].type", user([{ type: "video" }]), "video", "'text', 'image_url', 'input_audio', and 'file'"],
  ["verbosity", { verbosity: "loud" }, "loud", "'low', 'medium', and 'high'"],
  ["tool_choice", { tools: [tool], tool_choice: "any" }, "any", "'none', 'auto', and 'required'"],
  ["tools[0].type", { tools: [{ type: "robot" }] }, "robot", "'function' and 'custom'"],
  ["response_format.type", { response_format: { type: "xml" } }, "xml", "'text', 'json_object', and 'json_schema'"],
])("no such value: %s", (path, members, value, supported) => {
  const message = `Invalid value: '${value}'. Supported values are: ${supported}.`;
  expect(refusal(members)).toEqual({ message, param: path, code: "invalid_value" });
});

test.each<
  [path: string, members: object, kind: "integer" | "decimal", side: "below" | "above", limit: number, value: number]
>([
  ["temperature", { temperature: 2.5 }, "decimal", "above", 2, 2.5],
  ["temperature", { temperature: -1 }, "decimal", "below", 0, -1],
  ["top_p", { top_p: 1.01 }, "decimal", "above", 1, 1.01],
  ["frequency_penalty", { frequency_penalty: -3 }, "decimal", "below", -2, -3],
  ["max_tokens", { max_tokens: -2 }, "integer", "below", 1, -2],
  ["max_completion_tokens", { max_completion_tokens: 0 }, "integer", "below", 1, 0],
  ["n", { n: 0 }, "integer", "below", 1, 0],
  ["n", { n: 129 }, "integer", "above", 128, 129],
  ["top_logprobs", { logprobs: true, top_logprobs: 21 }, "integer", "above", 20, 21],
  ["logit_bias.5", { logit_bias: { 5: 101 } }, "decimal", "above", 100, 101],
  ["min_p", { min_p: 2 }, "decimal", "above", 1, 2],
])("out of range: %s", (path, members, kind, side, limit, value) => {
  const [word, sign, code] = side === "below" ? ["minimum", ">=", "min"] : ["maximum", "<=", "max"];
  const message = `Invalid '${path}': ${kind} ${side} ${word} value. Expected a value ${sign} ${limit}, but got ${value} instead.`;
  expect(refusal(members)).toEqual({ message, param: path, code: `${kind}_${side}_${code}_value` });
});

test.each<[path: string, members: object]>([
  ["messages", { messages: [] }],
  ["messages[1].content", user([])],
])("an empty array: %s", (path, members) => {
  const message = `Invalid '${path}': empty array. Expected an array with minimum length 1, but got an empty array instead.`;
  expect(refusal(members)).toEqual({ message, param: path, code: "empty_array" });
});

test.each<[param: string | null, members: object, code: string | null, message: string]>([
  [null, { model: undefined }, null, "you must provide a model parameter"],
  [null, { model: "" }, null, "you must provide a model parameter"],
  [
    "safety_identifier",
    { safety_identifier: "x".repeat(65) },
    "string_above_max_length",
    "Invalid 'safety_identifier': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
  ],
  [
    "top_logprobs",
    { top_logprobs: 2 },
    null,
    "Invalid value for 'top_logprobs': 'top_logprobs' is only allowed when 'logprobs' is true.",
  ],
  [
    "logit_bias[1]",
    { logit_bias: [[5, 1], [6]] },
    "invalid_type",
    "Invalid type for 'logit_bias[1]': expected an array of two, but got an array instead.",
  ],
  [
    "logit_bias[0][1]",
    { logit_bias: [["word", true]] },
    "invalid_type",
    "Invalid type for 'logit_bias[0][1]': expected a decimal, but got a boolean instead.",
  ],
  [
    "tool_choice",
    { tool_choice: "required" },
    null,
    "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
  ],
  [
    "tool_choice.function.name",
    { tools: [tool], tool_choice: { type: "function", function: { name: "g" } } },
    null,
    "Invalid value for 'tool_choice.function.name': no function named 'g' was specified in the 'tools' parameter.",
  ],
  [
    "function_call",
    { function_call: { name: "f" } },
    null,
    "Invalid value for 'function_call': 'function_call' is only allowed when 'functions' are specified.",
  ],
  [
    "tools[0].function.parameters",
    { tools: [{ type: "function", function: { name: "f", parameters: { type: "string" } } }] },
    "invalid_function_parameters",
    "Invalid schema for function 'f': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"string\"'.",
  ],
  [
    "grammar",
    { response_format: { type: "json_object" }, grammar: "root ::= [a]" },
    null,
    "Invalid value for 'grammar': it cannot be combined with 'response_format'.",
  ],
  [
    "continue_final_message",
    { continue_final_message: true },
    null,
    "'continue_final_message' needs 'add_generation_prompt' to be false.",
  ],
  [
    "messages[0].role",
    { continue_final_message: true, add_generation_prompt: false },
    null,
    "'continue_final_message' needs a last message from the assistant.",
  ],
])("refused: %s", (param, members, code, message) => {
  expect(refusal(members)).toEqual({ message, param, code });
});

test.each<[param: string, members: object]>([
  ["audio", { audio: { voice: "alloy", format: "wav" } }],
  ["web_search_options", { web_search_options: {} }],
  ["moderation", { moderation: { model: "m" } }],
  ["mirostat", { mirostat: 2 }],
  ["typical_p", { typical_p: 0.9 }],
])("not to be had: %s", (param, members) => {
  const message = `Unsupported parameter: '${param}' is not supported with this model.`;
  expect(refusal(members)).toEqual({ message, param, code: "unsupported_parameter" });
});

test("audio as a modality", () => {
  expect(refusal({ modalities: ["text", "audio"] })).toEqual({
    message: "Unsupported value: 'modalities' does not support 'audio' with this model.",
    param: "modalities",
    code: "unsupported_value",
  });
});

test.each([null, "text", [], 3])("a body that is not an object: %j", (body) => {
  expect(() => readChatRequest(body, "req_1")).toThrow(FailureError);
});

test("the first error does not depend on the order of keys", () => {
  expect(refusal({ n: 0, temperature: 9 })).toEqual(refusal({ temperature: 9, n: 0 }));
});

describe("profile exact also refuses what only OpenAI does", () => {
  const closed = { type: "object", additionalProperties: false };
  const strict = (schema: object): object => format({ name: "n", strict: true, schema });
  const inContext = "Invalid schema for response_format 'n': In context=";
  const schemaPath = "response_format.json_schema.schema";

  test.each<[param: string, members: object, message: string]>([
    ["logit_bias", { logit_bias: { word: 1 } }, "Invalid value for 'logit_bias': 'word' is not a token id."],
    [
      "logit_bias",
      { logit_bias: [[5, 1]] },
      "Invalid type for 'logit_bias': expected an object, but got an array instead.",
    ],
    [
      "stop",
      { stop: ["1", "2", "3", "4", "5"] },
      "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 instead.",
    ],
    [
      "tools",
      { tools: [] },
      "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    ],
    [
      "tools[0].function.name",
      { tools: [{ type: "function", function: { name: "a.b" } }] },
      "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    ],
    [
      "stream_options",
      { stream_options: { include_usage: true } },
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    ],
    [
      "messages.[1].role",
      { messages: [hello, { role: "tool", tool_call_id: "call_1", content: "x" }] },
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    ],
    [
      "messages.[1].content",
      { messages: [hello, { role: "assistant" }] },
      "Invalid value for 'content': expected a string, got null.",
    ],
    [
      schemaPath,
      strict({ type: "object", properties: {} }),
      `${inContext}(), 'additionalProperties' is required to be supplied and to be false.`,
    ],
    [
      schemaPath,
      strict({ ...closed, required: ["a"], properties: { a: { type: "object" } } }),
      `${inContext}('properties', 'a'), 'additionalProperties' is required to be supplied and to be false.`,
    ],
    [
      schemaPath,
      strict({ ...closed, required: [], properties: { a: {} } }),
      `${inContext}(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'a'.`,
    ],
    // A local model's grammar refused these, in words of its own; a program got them.
    [
      "tools[0].function.parameters",
      {
        tools: [
          {
            type: "function",
            function: { name: "f", parameters: { type: "object", properties: { a: { type: "nope" } } } },
          },
        ],
      },
      "Invalid schema for function 'f': 'nope' is not valid under any of the given schemas.",
    ],
    [
      schemaPath,
      format({ name: "n", schema: { anyOf: [{ items: { type: ["string", null] } }] } }),
      "Invalid schema for response_format 'n': ['string', None] is not valid under any of the given schemas.",
    ],
    [
      schemaPath,
      strict({ ...closed, required: ["a"], properties: { a: { $ref: "https://example.com/a.json" } } }),
      `${inContext}('properties', 'a'), reference can only point to definitions defined at the top level of the schema.`,
    ],
    [
      schemaPath,
      strict({
        ...closed,
        required: ["a"],
        properties: { a: { type: "array", items: { $ref: "#/$defs/b" } } },
        $defs: { c: {} },
      }),
      `${inContext}('properties', 'a', 'items'), reference to component '#/$defs/b' which was not found in the schema.`,
    ],
  ])("%s", (param, members, message) => {
    expect(refusal(members, { profile: exact })).toMatchObject({ message, param });
    expect(() => read(members)).not.toThrow();
  });

  // A turn that refers to an earlier audio answer was refused for its missing content.
  test("a message of the assistant has content, a call, a refusal or audio", () => {
    const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
    const result = { role: "tool", tool_call_id: "call_1", content: "1" };
    for (const [members, ...later] of [
      [{ audio: { id: "audio_1" } }],
      [{ refusal: "No." }],
      [{ tool_calls: [call] }, result],
    ])
      expect(() =>
        read({ messages: [hello, { role: "assistant", content: null, ...members }, ...later] }, { profile: exact }),
      ).not.toThrow();
    const silent = { role: "assistant", audio: null, reasoning: "Hm." };
    expect(refusal({ messages: [hello, silent] }, { profile: exact })).toMatchObject({ param: "messages.[1].content" });
  });

  test("members with names of keywords, and references to definitions of the schema, are accepted", () => {
    const schema = {
      ...closed,
      required: ["type", "next"],
      properties: {
        type: { enum: ["nope"], type: "string" },
        next: { anyOf: [{ $ref: "#" }, { $ref: "#/$defs/a~1b" }] },
      },
      $defs: { "a/b": { type: ["string", "null"] } },
    };
    expect(() => read(strict(schema), { profile: exact })).not.toThrow();
  });
});

describe("prompt_cache_options", () => {
  test.each([
    [
      "prompt_cache_options.ttl",
      { ttl: "5m" },
      "Invalid value: '5m'. Supported values are: '30m' and '12h'.",
      "invalid_value",
    ],
    [
      "prompt_cache_options.prewarm",
      { prewarm: true },
      "Unknown parameter: 'prompt_cache_options.prewarm'.",
      "unknown_parameter",
    ],
  ])("%s is refused in profile exact only", (param, prompt_cache_options, message, code) => {
    expect(refusal({ prompt_cache_options }, { profile: exact })).toEqual({ message, param, code });
    read({ prompt_cache_options });
    read({ prompt_cache_options }, { profile: exact, forwards: true });
  });

  test("OpenAI's own values, and breakpoints of contents, are accepted", () => {
    const prompt_cache_breakpoint = { mode: "explicit", ttl: "12h" };
    const image_url = { url: "https://example.com/a.png", detail: "original" };
    read(
      {
        prompt_cache_options: { mode: "explicit", ttl: "12h" },
        ...user([
          { type: "text", text: "x", prompt_cache_breakpoint },
          { type: "image_url", image_url, prompt_cache_breakpoint },
        ]),
      },
      { profile: exact },
    );
  });
});
