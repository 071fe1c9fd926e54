import type { Json } from "./trials/client-apis.ts";

/* Bodies of requests to Ollama's own API, each without its model: as in inputs.ts, the server and its double must do the same with each. */

const user: Json = { role: "user", content: "Say hello." };
const call: Json = { function: { name: "read_file", arguments: { path: "a.txt" } } };
const few: Json = { num_predict: 2 };
const tool: Json = {
  type: "function",
  function: {
    name: "read_file",
    description: "Reads a file.",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
};
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const chat = (...messages: readonly unknown[]): Json => ({ messages, stream: false, options: few });
const saying = (more: Json): Json => ({ ...chat(user), ...more });
const withOptions = (more: Json): Json => saying({ options: { ...few, ...more } });
const generating = (more: Json): Json => ({ prompt: "Say hello.", stream: false, options: few, ...more });

/** The requests by their paths. */
export const ollamaInputs: Readonly<Record<string, Readonly<Record<string, Json>>>> = {
  "/api/chat": {
    "a question": chat(user),
    "no messages": chat(),
    "no member messages": { stream: false },
    "messages: a string": { messages: "hello", stream: false },
    "a message that is a string": chat("hello"),
    "content: a number": chat({ role: "user", content: 5 }),
    "content: null": chat({ role: "user", content: null }),
    "content: a list": chat({ role: "user", content: [{ type: "text", text: "hello" }] }),
    "no content": chat({ role: "user" }),
    "no role": chat({ content: "hello" }),
    "a role that does not exist": chat({ role: "robot", content: "hello" }),
    "a system message in the middle": chat(user, { role: "system", content: "Be brief." }, user),
    "an assistant message last": chat(user, { role: "assistant", content: "Hel" }),
    "an unknown member": saying({ foo: 1 }),
    "stream: a string": saying({ stream: "no" }),
    "model: a number": saying({ model: 5 }),
    "an unknown model": saying({ model: "no-such-model" }),
    "no model": saying({ model: "" }),
    "options: a string": saying({ options: "hot" }),
    "an unknown option": withOptions({ foo: 1 }),
    "temperature: a string": withOptions({ temperature: "hot" }),
    "temperature: null": withOptions({ temperature: null }),
    "top_k: a fraction": withOptions({ top_k: 1.5 }),
    "num_ctx: 0": withOptions({ num_ctx: 0 }),
    "num_predict: 0": withOptions({ num_predict: 0 }),
    "stop: a string": withOptions({ stop: "a" }),
    "stop: a list with a number": withOptions({ stop: ["a", 1] }),
    "use_mmap: a string": withOptions({ use_mmap: "yes" }),
    "keep_alive: a duration": saying({ keep_alive: "5m" }),
    "keep_alive: a number": saying({ keep_alive: -1 }),
    "keep_alive without a unit": saying({ keep_alive: "5" }),
    "keep_alive: no duration": saying({ keep_alive: "soon" }),
    "keep_alive: a list": saying({ keep_alive: [] }),
    "think: true": saying({ think: true }),
    "think: false": saying({ think: false }),
    "think: high": saying({ think: "high" }),
    "think: unknown": saying({ think: "enormous" }),
    "think: a number": saying({ think: 1 }),
    "format: json": saying({ format: "json" }),
    "format: an empty string": saying({ format: "" }),
    "format: null": saying({ format: null }),
    "format: unknown": saying({ format: "xml" }),
    "format: a number": saying({ format: 5 }),
    "format: a list": saying({ format: [] }),
    "format: a schema": saying({ format: { type: "object", properties: { a: { type: "string" } }, required: ["a"] } }),
    "format: a schema with an unknown type": saying({ format: { type: "colour" } }),
    "format: a schema with a $ref that leads nowhere": saying({ format: { $ref: "#/$defs/none" } }),
    logprobs: saying({ logprobs: true, top_logprobs: 2 }),
    "logprobs: a string": saying({ logprobs: "yes" }),
    "top_logprobs: 30": saying({ logprobs: true, top_logprobs: 30 }),
    "top_logprobs: -1": saying({ logprobs: true, top_logprobs: -1 }),
    "truncate: false": saying({ truncate: false }),
    "shift: false": saying({ shift: false }),
    "a tool": saying({ tools: [tool] }),
    "tools: an object": saying({ tools: {} }),
    "a tool without parameters": saying({ tools: [{ type: "function", function: { name: "now" } }] }),
    "a tool whose property has the schema true": saying({
      tools: [{ type: "function", function: { name: "f", parameters: { type: "object", properties: { a: true } } } }],
    }),
    "a tool whose property has a list of types": saying({
      tools: [
        {
          type: "function",
          function: { name: "f", parameters: { type: "object", properties: { a: { type: ["string", "null"] } } } },
        },
      ],
    }),
    "a call and its result": chat(
      user,
      { role: "assistant", content: "", tool_calls: [call] },
      { role: "tool", content: "Notes.", tool_name: "read_file" },
    ),
    "a call whose arguments are a string": chat(
      user,
      { role: "assistant", content: "", tool_calls: [{ function: { name: "f", arguments: "{}" } }] },
      { role: "tool", content: "Notes." },
    ),
    "a call without arguments": chat(
      user,
      { role: "assistant", content: "", tool_calls: [{ function: { name: "f" } }] },
      user,
    ),
    "a call without its result": chat(user, { role: "assistant", content: "", tool_calls: [call] }, user),
    "a result without its call": chat(user, { role: "tool", content: "Notes." }),
    "thinking in the history": chat(user, { role: "assistant", content: "Hi.", thinking: "Hm." }, user),
    "an image": chat({ ...user, images: [pixel] }),
    "an image that is no base64": chat({ ...user, images: ["%%%"] }),
    "images: a string": chat({ ...user, images: pixel }),
    "images: an empty list": chat({ ...user, images: [] }),
  },
  "/api/generate": {
    "a prompt": generating({}),
    "an empty prompt": generating({ prompt: "" }),
    "prompt: a number": generating({ prompt: 5 }),
    system: generating({ system: "Be brief." }),
    raw: generating({ raw: true }),
    "raw with a system message": generating({ raw: true, system: "Be brief." }),
    suffix: generating({ suffix: "end" }),
    template: generating({ template: "{{ .Prompt }}" }),
    "a template that is not closed": generating({ template: "{{ .Prompt" }),
    "context: a string": generating({ context: "a" }),
    "think: true": generating({ think: true }),
    "format: unknown": generating({ format: "xml" }),
    "an image": generating({ images: [pixel] }),
    "an unknown model": generating({ model: "no-such-model" }),
  },
  "/api/embed": {
    "a text": { input: "hello" },
    "two texts": { input: ["hello", "you"] },
    "an empty text": { input: "" },
    "no texts": { input: [] },
    "a number": { input: 5 },
    "no input": {},
    "an unknown model": { model: "no-such-model", input: "hello" },
  },
  "/api/show": {
    "a model": {},
    "an unknown model": { model: "no-such-model" },
    "no model": { model: "" },
    "model: a number": { model: 5 },
  },
};
