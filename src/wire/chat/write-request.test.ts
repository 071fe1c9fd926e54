import { describe, expect, test } from "vitest";
import type { ChatPrompt, GenerationRequest } from "../../generation/request.ts";
import { readChatRequest } from "./read-request.ts";
import { writeChatRequest } from "./write-request.ts";

const prompt: ChatPrompt = {
  kind: "chat",
  template: {},
  messages: [
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "What is it?" },
        { type: "image", url: "data:image/png;base64,AA==", detail: "low" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "Hm." },
        { type: "tool-call", id: "call_1", name: "f", arguments: '{"a":' },
      ],
    },
    { role: "tool", content: "42", toolCallId: "call_1", name: "f" },
  ],
};

/** As a program or a library makes it: no JSON to forward. */
const made: GenerationRequest = {
  id: "req_1",
  model: "m",
  prompt,
  sampling: { temperature: 0, topP: 0.5, topK: 0, seed: 0 },
  limits: { maxTokens: 5, stop: ["END"] },
  logprobs: { top: 0 },
  tools: [
    { name: "f", description: "d", parameters: { type: "object", properties: {} }, strict: true },
    { name: "sh", kind: "custom" },
    { name: "re", kind: "custom", inputGrammar: { syntax: "regex", definition: "a+" } },
  ],
  toolChoice: { type: "named", name: "sh" },
  parallelToolCalls: false,
  output: { type: "json-schema", name: "x", schema: { type: "object" }, strict: true, path: "" },
  wantsUsage: true,
  stream: true,
  extra: { mine: 1 },
};

describe("a request that was made in code", () => {
  const body = writeChatRequest(made, {});

  test("is written whole; falsy values survive, what is not set is absent", () => {
    expect(body).toEqual({
      model: "m",
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "What is it?" },
            { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "low" } },
          ],
        },
        {
          role: "assistant",
          content: null,
          reasoning_content: "Hm.",
          tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: '{"a":' } }],
        },
        { role: "tool", tool_call_id: "call_1", content: "42" },
      ],
      temperature: 0,
      top_p: 0.5,
      top_k: 0,
      seed: 0,
      max_tokens: 5,
      stop: ["END"],
      logprobs: true,
      top_logprobs: 0,
      tools: [
        {
          type: "function",
          function: { name: "f", description: "d", parameters: { type: "object", properties: {} }, strict: true },
        },
        { type: "custom", custom: { name: "sh" } },
        {
          type: "custom",
          custom: {
            name: "re",
            format: { type: "grammar", grammar: { syntax: "regex", definition: "a+" } },
          },
        },
      ],
      tool_choice: { type: "custom", custom: { name: "sh" } },
      parallel_tool_calls: false,
      response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: "object" }, strict: true } },
      mine: 1,
    });
  });

  test("is read back as it was", () => {
    const { request } = readChatRequest({ ...body, mine: undefined, top_k: 0 }, "req_1");
    expect(request.prompt).toMatchObject({ messages: prompt.messages.map((message) => ({ ...message })) });
    expect(request).toMatchObject({
      sampling: made.sampling,
      limits: made.limits,
      tools: made.tools,
      toolChoice: made.toolChoice,
    });
  });
});

test("a request that came as JSON is not touched where nothing has to be", () => {
  const came = {
    model: "alias",
    messages: [{ role: "user", content: "Hi", cache_control: { type: "ephemeral" } }],
    vendor: { a: [null] },
  };
  const request = { ...made, stream: false, passthrough: { dialect: "chat", body: came } };
  expect(writeChatRequest(request, { model: "theirs" })).toEqual({ ...came, model: "theirs" });
  expect(came.model).toBe("alias");
});

test("without a stream there are no stream options, and usage that was not asked for is not asked for", () => {
  const came = { messages: [], stream: true, stream_options: { include_usage: true, include_obfuscation: false } };
  const passthrough = { dialect: "chat", body: came };
  expect(writeChatRequest({ ...made, stream: false, passthrough }, {})).toEqual({ messages: [], model: "m" });
  expect(writeChatRequest({ ...made, wantsUsage: false, passthrough }, {})).toMatchObject({
    stream_options: { include_obfuscation: false },
  });
});
