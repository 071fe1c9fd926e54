import type { Json } from "./trials/client-apis.ts";

/*
 * Bodies of chat requests that servers disagree on: what some take and others refuse. Each is a whole request without its model; it is sent
 * to the real server and to its double, and both must do the same.
 */

const user: Json = { role: "user", content: "Say hello." };
const tool: Json = {
  type: "function",
  function: {
    name: "read_file",
    description: "Reads a file.",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
};
const call: Json = { id: "call_1", type: "function", function: { name: "read_file", arguments: '{"path":"a.txt"}' } };
const result: Json = { role: "tool", tool_call_id: "call_1", content: "Notes." };
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const chat = (...messages: readonly Json[]): Json => ({ messages, max_tokens: 4 });
const saying = (more: Json): Json => ({ ...chat(user), ...more });
const withTool = (more: Json): Json => saying({ tools: [tool], ...more });
const callOf = (more: Json): Json =>
  chat(user, { role: "assistant", content: null, tool_calls: [{ ...call, ...more }] }, result);
const parts = (...content: readonly unknown[]): Json => chat({ role: "user", content });
const picture = (url: string): Json => parts({ type: "image_url", image_url: { url } });
const answerOf = (schema: unknown): Json =>
  saying({ response_format: { type: "json_schema", json_schema: { name: "answer", schema } } });

export const inputs: Readonly<Record<string, Json>> = {
  "a question": chat(user),
  "no messages": chat(),
  "messages: a string": { messages: "hello", max_tokens: 4 },
  "no member messages": { max_tokens: 4 },
  "an unknown member": saying({ foo: 1 }),
  "temperature: a string": saying({ temperature: "hot" }),
  "temperature: 9": saying({ temperature: 9 }),
  "top_p: 0": saying({ top_p: 0 }),
  "max_tokens: -1": saying({ max_tokens: -1 }),
  "max_tokens: 0": saying({ max_tokens: 0 }),
  "max_tokens and max_completion_tokens": saying({ max_completion_tokens: 4 }),
  "n: 2": saying({ n: 2 }),
  "n: 0": saying({ n: 0 }),
  "five stop sequences": saying({ stop: ["a", "b", "c", "d", "e"] }),
  "stop: an empty string": saying({ stop: "" }),
  logprobs: saying({ logprobs: true, top_logprobs: 2 }),
  "top_logprobs without logprobs": saying({ top_logprobs: 2 }),
  "top_logprobs: 30": saying({ logprobs: true, top_logprobs: 30 }),
  "stream_options without a stream": saying({ stream_options: { include_usage: true } }),
  "an unknown stream option": saying({ stream: true, stream_options: { foo: true } }),
  logit_bias: saying({ logit_bias: { "5": -100 } }),
  "seed, user, store, metadata": saying({ seed: 1, user: "u", store: false, metadata: { a: "b" } }),
  penalties: saying({ frequency_penalty: 0.5, presence_penalty: 0.5 }),
  "prompt_cache_key, safety_identifier": saying({ prompt_cache_key: "k", safety_identifier: "s" }),
  "verbosity: low": saying({ verbosity: "low" }),
  "service_tier: auto": saying({ service_tier: "auto" }),
  "reasoning_effort: low": saying({ reasoning_effort: "low" }),
  "reasoning_effort: unknown": saying({ reasoning_effort: "enormous" }),
  "a role that does not exist": chat({ role: "robot", content: "hello" }),
  "the role developer": chat({ role: "developer", content: "Be brief." }, user),
  "a system message in the middle": chat(
    user,
    { role: "assistant", content: "Hello." },
    { role: "system", content: "Be brief." },
    user,
  ),
  "two system messages": chat({ role: "system", content: "Be brief." }, { role: "system", content: "Be kind." }, user),
  "two user messages": chat(user, user),
  "an assistant message last": chat(user, { role: "assistant", content: "Hel" }),
  "an assistant message first": chat({ role: "assistant", content: "Hello." }, user),
  "content: null": chat({ role: "user", content: null }),
  "content: an empty string": chat({ role: "user", content: "" }),
  "content: a number": chat({ role: "user", content: 5 }),
  "no content": chat({ role: "user" }),
  "content: parts": parts({ type: "text", text: "Say" }, { type: "text", text: "hello." }),
  "content: an empty list": parts(),
  "a part of an unknown type": parts({ type: "smell", smell: "rose" }),
  "a text part without text": parts({ type: "text" }),
  "an image as data": picture(`data:image/png;base64,${pixel}`),
  "an image by address": picture("http://127.0.0.1:9/a.png"),
  "an image that is no base64": picture("data:image/png;base64,%%%"),
  "a file": parts({ type: "file", file: { filename: "a.txt", file_data: "data:text/plain;base64,aGVsbG8=" } }),
  "reasoning_content in the history": chat(user, { role: "assistant", content: "Hi.", reasoning_content: "Hm." }, user),
  "an unknown member of a message": chat({ ...user, foo: 1 }),
  "name of a message": chat({ ...user, name: "ann" }),
  "a tool": withTool({}),
  "an empty list of tools": saying({ tools: [] }),
  "tool_choice: required": withTool({ tool_choice: "required", max_tokens: 24 }),
  "tool_choice: none": withTool({ tool_choice: "none" }),
  "tool_choice: one function": withTool({
    tool_choice: { type: "function", function: { name: "read_file" } },
    max_tokens: 24,
  }),
  "tool_choice: an unknown function": withTool({ tool_choice: { type: "function", function: { name: "other" } } }),
  "tool_choice: unknown": withTool({ tool_choice: "perhaps" }),
  "tool_choice without tools": saying({ tool_choice: "auto" }),
  "tool_choice: required, without tools": saying({ tool_choice: "required" }),
  "parallel_tool_calls without tools": saying({ parallel_tool_calls: true }),
  "a tool of type custom": saying({ tools: [{ type: "custom", custom: { name: "shell" } }] }),
  "a tool without parameters": saying({ tools: [{ type: "function", function: { name: "now" } }] }),
  "a tool without a name": saying({ tools: [{ type: "function", function: { description: "d" } }] }),
  "a tool whose property has the schema true": saying({
    tools: [{ type: "function", function: { name: "f", parameters: { type: "object", properties: { a: true } } } }],
  }),
  "a call and its result": callOf({}),
  "a call with an unknown member": callOf({ extra_content: { google: { thought_signature: "AAAA" } } }),
  "a call whose arguments are no JSON": callOf({ function: { name: "read_file", arguments: "{" } }),
  "a call whose arguments are an object": callOf({ function: { name: "read_file", arguments: { path: "a" } } }),
  "a call whose arguments are empty": callOf({ function: { name: "read_file", arguments: "" } }),
  "a call without a type": callOf({ type: undefined }),
  "a call without an id": callOf({ id: undefined }),
  "a call without its result": chat(user, { role: "assistant", content: null, tool_calls: [call] }, user),
  "a call and content: an empty string": chat(user, { role: "assistant", content: "", tool_calls: [call] }, result),
  "a call and no content": chat(user, { role: "assistant", tool_calls: [call] }, result),
  "a result without its call": chat(user, result),
  "a result of parts": chat(
    user,
    { role: "assistant", content: null, tool_calls: [call] },
    {
      ...result,
      content: [{ type: "text", text: "Notes." }],
    },
  ),
  "a result of another id": chat(
    user,
    { role: "assistant", content: null, tool_calls: [call] },
    {
      ...result,
      tool_call_id: "call_2",
    },
  ),
  "a user's message after a result": chat(user, { role: "assistant", content: null, tool_calls: [call] }, result, user),
  "JSON of any form": saying({ response_format: { type: "json_object" } }),
  "response_format: unknown": saying({ response_format: { type: "xml" } }),
  "a schema": answerOf({ type: "object", properties: { a: { type: "string" } }, required: ["a"] }),
  "a schema with a pattern that looks ahead": answerOf({
    type: "object",
    properties: { a: { type: "string", pattern: "^(?=.*x).*$" } },
    required: ["a"],
  }),
  "a schema with uniqueItems": answerOf({ type: "array", items: { type: "integer" }, uniqueItems: true }),
  "a schema that is a string": answerOf("object"),
  "a schema with an unknown type": answerOf({ type: "colour" }),
  "a schema with a $ref that leads nowhere": answerOf({ $ref: "#/$defs/none" }),
};
