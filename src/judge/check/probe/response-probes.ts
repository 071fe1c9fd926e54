import type { Exchange } from "../rules/exchange.ts";
import type { Probe } from "./probe.ts";
import { argumentNamed, bothWays, person, prompts, refused, weatherFound } from "./prompts.ts";
import { earlierAnswer } from "./response-request.ts";

function tool(name: string, argument: string): Record<string, unknown> {
  return {
    type: "function",
    name,
    description: `The current ${argument}`,
    parameters: argumentNamed(argument),
    strict: true,
  };
}

const weather = tool("get_weather", "city");
const time = tool("get_time", "timezone");

const noCall = (exchange: Exchange) =>
  /"type"\s*:\s*"(function|custom_tool)_call"/.test(exchange.response.body) ? undefined : "the model called no tool";
const noText = (exchange: Exchange) =>
  /"text"\s*:\s*"[^"]/.test(exchange.response.body) ? undefined : "the model said nothing";
const noReasoning = (exchange: Exchange) =>
  /"type"\s*:\s*"reasoning"/.test(exchange.response.body) ? undefined : "the model did not think";

function response(id: string, about: string, members: Record<string, unknown>, more: Partial<Probe> = {}): Probe {
  const body = (model: string) => ({
    model,
    input: prompts.hello,
    temperature: 0,
    max_output_tokens: 64,
    store: false,
    ...members,
  });
  return {
    id: `responses/${id}`,
    about: `Responses: ${about}`,
    endpoint: "responses",
    method: "POST",
    path: () => "/responses",
    body,
    expects: "answer",
    ...more,
  };
}

const both = bothWays(response);
const wrong = refused(both);

/** What `truewire check` sends to `POST /responses`. */
export const responseProbes: readonly Probe[] = [
  ...both("text", "a short text", {}),
  ...both("instructions", "instructions and settings that are repeated", {
    instructions: "You are brief.",
    top_p: 0.9,
    metadata: { check: "1" },
    truncation: "auto",
    user: "check",
  }),
  ...[true, false].map((wanted) =>
    response(
      `obfuscation-${wanted ? "on" : "off"}/stream`,
      `a stream ${wanted ? "with" : "without"} obfuscation`,
      { stream: true, stream_options: { include_obfuscation: wanted } },
      { expects: "any" },
    ),
  ),
  ...both("length", "an answer that is cut by max_output_tokens", { input: prompts.count, max_output_tokens: 16 }),
  ...both(
    "logprobs",
    "log probabilities",
    { include: ["message.output_text.logprobs"], top_logprobs: 3 },
    { expects: "any", notShown: noText },
  ),
  ...both("unicode", "text beyond ASCII", { input: prompts.unicode }),
  ...both("parts", "a message in parts", {
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "Say " },
          { type: "input_text", text: "hi." },
        ],
      },
    ],
  }),
  ...both("history", "a conversation", {
    input: [
      { type: "message", role: "developer", content: "You are brief." },
      { type: "message", role: "user", content: [{ type: "input_text", text: "My name is Ada." }] },
      earlierAnswer,
      { role: "user", content: "What is my name?" },
    ],
  }),
  ...both(
    "reasoning",
    "reasoning as a summary",
    { reasoning: { summary: "auto" } },
    { expects: "any", notShown: noReasoning },
  ),
  ...both(
    "sealed",
    "encrypted reasoning",
    { reasoning: { summary: "auto" }, include: ["reasoning.encrypted_content"] },
    { expects: "any", notShown: noReasoning },
  ),
  ...both("tools", "a tool that may be called", { input: prompts.weather, tools: [weather] }, { notShown: noCall }),
  ...both(
    "tools-required",
    "a tool that must be called",
    { input: prompts.weather, tools: [weather, time], tool_choice: "required" },
    { notShown: noCall },
  ),
  ...both(
    "tools-named",
    "one tool by name",
    { tools: [weather, time], tool_choice: { type: "function", name: "get_time" } },
    { notShown: noCall },
  ),
  ...both("tools-none", "tools that must not be called", {
    input: prompts.weather,
    tools: [weather],
    tool_choice: "none",
  }),
  ...both(
    "tools-parallel",
    "two parallel calls",
    {
      input: prompts.twoCities,
      tools: [weather],
      max_output_tokens: 128,
    },
    { notShown: noCall },
  ),
  ...both(
    "tools-single",
    "one call at most",
    {
      input: prompts.oneCity,
      tools: [weather],
      parallel_tool_calls: false,
      max_output_tokens: 128,
    },
    { notShown: noCall },
  ),
  ...both(
    "tools-namespace",
    "a tool in a namespace, as Codex sends those of MCP servers",
    {
      input: prompts.weather,
      tools: [{ type: "namespace", name: "weather", description: "The weather", tools: [weather] }],
      tool_choice: "required",
      max_output_tokens: 128,
    },
    { expects: "any", notShown: noCall },
  ),
  ...both(
    "tools-custom",
    "a tool whose input is free text",
    {
      input: "Note down the word amber. Use the tool.",
      tools: [{ type: "custom", name: "note", description: "Notes down a text" }],
      tool_choice: { type: "custom", name: "note" },
    },
    { expects: "any", notShown: noCall },
  ),
  ...both("tools-hosted", "a tool that the vendor runs", { tools: [{ type: "web_search" }] }, { expects: "any" }),
  ...both("tool-result", "a tool's result in the history", {
    input: [
      { role: "user", content: prompts.weather },
      { type: "function_call", call_id: "call_1", name: "get_weather", arguments: '{"city":"Paris"}' },
      { type: "function_call_output", call_id: "call_1", output: weatherFound },
    ],
    tools: [weather],
  }),
  ...both("json", "any JSON object", {
    input: "Give me a JSON object with one member, name.",
    text: { format: { type: "json_object" } },
    max_output_tokens: 200,
  }),
  ...both("json-schema", "JSON after a schema", {
    input: prompts.person,
    text: { format: { type: "json_schema", name: "person", strict: true, schema: person } },
    max_output_tokens: 200,
  }),
  // The specification allows null here. It does not for text, tools, tool_choice, top_logprobs and user.
  ...both("nulls", "members that are null", {
    instructions: null,
    reasoning: null,
    include: null,
    metadata: null,
    stream_options: null,
    top_p: null,
    truncation: null,
    parallel_tool_calls: null,
    previous_response_id: null,
  }),
  ...both("unknown-member", "an unknown member", { truewire_check: { any: ["thing"] } }, { expects: "any" }),
  {
    ...response("input-tokens", "the tokens of an input", {}, { expects: "any" }),
    endpoint: "response-tokens",
    path: () => "/responses/input_tokens",
    body: (model) => ({ model, input: prompts.hello, tools: [weather] }),
  },
  // Of a server that stores nothing, too.
  {
    id: "responses/get/unknown",
    about: "Responses: a stored response that does not exist",
    endpoint: "responses",
    method: "GET",
    path: () => "/responses/resp_0000000000000000000000000000000000000000000000000",
    expects: { refusal: 404, param: null },
  },
  ...wrong("no-input", "no input", null, { input: undefined }),
  ...wrong("input-type", "an input that is a number", "input", { input: 7 }),
  ...wrong("temperature", "a temperature of 3", "temperature", { temperature: 3 }),
  ...wrong("temperature-type", "a temperature in words", "temperature", { temperature: "warm" }),
  ...wrong("max-output-tokens", "a negative max_output_tokens", "max_output_tokens", { max_output_tokens: -2 }),
  ...wrong("top-logprobs", "top_logprobs of 21", "top_logprobs", { top_logprobs: 21 }),
  ...wrong("tool-choice", "a tool_choice without tools", "tool_choice", { tool_choice: "required" }),
  ...wrong("tool-unknown", "a tool_choice that names no tool", "tool_choice", {
    tools: [weather],
    tool_choice: { type: "function", name: "no_such_tool" },
  }),
  ...wrong("effort", "an effort that does not exist", "reasoning.effort", { reasoning: { effort: "extreme" } }),
  ...wrong("format", "a schema left out", "text.format.schema", {
    text: { format: { type: "json_schema", name: "x" } },
  }),
  ...wrong("previous", "a response that does not exist before it", "previous_response_id", {
    previous_response_id: "resp_0000000000000000000000000000000000000000000000000",
  }),
  ...wrong("model", "a model that does not exist", "model", { model: "no-such-model" }),
  response(
    "wrong/json",
    "a body that is not JSON",
    {},
    { rawBody: '{"model": "x", ', expects: { refusal: 400, param: null } },
  ),
];
