import { expect, test } from "vitest";
import { callOptions, isLanguageModel, languageModelProgram } from "./language-model.ts";
import type { ProgramMessage } from "../../wire/apis/chat/request-types.ts";
import type { ProgramInput, ProgramItem } from "../../wire/apis/chat/program.ts";

function inputOf(more: Partial<ProgramInput> = {}): ProgramInput {
  const signal = new AbortController().signal;
  return {
    messages: [],
    model: "m",
    options: {},
    signal,
    request: { id: "r", stream: true, choice: 0 },
    ...more,
  };
}

function modelOf(parts: { type: string; [member: string]: unknown }[]): Parameters<typeof languageModelProgram>[0] {
  return {
    specificationVersion: "v3",
    provider: "test",
    modelId: "m",
    doStream: async () => ({ stream: ReadableStream.from(parts) as ReadableStream }),
  };
}

async function itemsOf(
  parts: { type: string; [member: string]: unknown }[],
  input: Partial<ProgramInput> = {},
): Promise<ProgramItem[]> {
  const returned = await languageModelProgram(modelOf(parts))(inputOf(input));
  const items: ProgramItem[] = [];
  for await (const item of returned as AsyncIterable<ProgramItem>) items.push(item);
  return items;
}

test("a model is recognised by its form", () => {
  expect(isLanguageModel(modelOf([]))).toBe(true);
  expect(isLanguageModel({ doStream: 1 })).toBe(false);
  expect(isLanguageModel(null)).toBe(false);
});

test("text, reasoning and streamed calls come through, and a streamed call is not repeated by its whole form", async () => {
  const items = await itemsOf([
    { type: "stream-start", warnings: [] },
    { type: "reasoning-delta", id: "0", delta: "hm" },
    { type: "text-delta", id: "1", delta: "Hi" },
    { type: "tool-input-start", id: "c", toolName: "f" },
    { type: "tool-input-delta", id: "c", delta: "{}" },
    { type: "tool-input-end", id: "c" },
    { type: "tool-call", toolCallId: "c", toolName: "f", input: "{}" },
    { type: "tool-call", toolCallId: "d", toolName: "g", input: '{"a":1}' },
    {
      type: "finish",
      finishReason: { unified: "tool-calls", raw: "tool_calls" },
      usage: { inputTokens: { total: 3, cacheRead: 1 }, outputTokens: { total: 4, reasoning: 2 } },
    },
  ]);
  expect(items).toEqual([
    { type: "reasoning", text: "hm" },
    { type: "text", text: "Hi" },
    { type: "tool-call-start", id: "c", name: "f" },
    { type: "tool-call-delta", arguments: "{}" },
    { type: "tool-call-end" },
    { type: "tool-call", id: "d", name: "g", arguments: '{"a":1}' },
    {
      type: "usage",
      usage: {
        promptTokens: 3,
        completionTokens: 4,
        promptDetails: { cached_tokens: 1 },
        completionDetails: { reasoning_tokens: 2 },
      },
    },
    { type: "finish", reason: "tool-calls" },
  ]);
});

test("specification v2's flat usage and finish reason are read as well", async () => {
  const items = await itemsOf([
    { type: "finish", finishReason: "length", usage: { inputTokens: 3, outputTokens: 4, totalTokens: 7 } },
  ]);
  expect(items).toEqual([
    { type: "usage", usage: { promptTokens: 3, completionTokens: 4 } },
    { type: "finish", reason: "length" },
  ]);
});

test("an error part is thrown", async () => {
  await expect(itemsOf([{ type: "error", error: new Error("overloaded") }])).rejects.toThrow("overloaded");
});

test("a conversation with tools becomes the SDK's prompt", () => {
  const call = { id: "c", type: "function" as const, function: { name: "f", arguments: '{"a":1}' } };
  const options = callOptions(
    inputOf({
      messages: [
        { role: "developer", content: "Be kind." },
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
          ],
        },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "c", content: "42" },
      ],
      tools: [{ type: "function", function: { name: "f", parameters: { type: "object" }, strict: true } }],
      options: { max_tokens: 9, stop: "x", tool_choice: { type: "function", function: { name: "f" } } },
    }),
  );
  expect(options).toMatchObject({
    prompt: [
      { role: "system", content: "Be kind." },
      {
        role: "user",
        content: [
          { type: "text", text: "look" },
          { type: "file", mediaType: "image/png", data: "AAAA" },
        ],
      },
      { role: "assistant", content: [{ type: "tool-call", toolCallId: "c", toolName: "f", input: { a: 1 } }] },
      {
        role: "tool",
        content: [{ type: "tool-result", toolCallId: "c", toolName: "f", output: { type: "text", value: "42" } }],
      },
    ],
    tools: [{ type: "function", name: "f", inputSchema: { type: "object" }, strict: true }],
    toolChoice: { type: "tool", toolName: "f" },
    maxOutputTokens: 9,
    stopSequences: ["x"],
  });
});

// Custom tools were left out, and a call of one in the history was a TypeError: nothing that Codex sends after its first patch worked.
test("a custom tool is a function of one text, in what is offered, told and called", async () => {
  const format = { type: "grammar", grammar: { syntax: "regex", definition: "[a-z]+" } } as const;
  const tools = [{ type: "custom", custom: { name: "say", description: "Say it", format } } as const];
  const call = { id: "c", type: "custom", custom: { name: "say", input: "hello" } } as const;
  const options = { tool_choice: { type: "custom", custom: { name: "say" } } } as const;
  const messages: ProgramMessage[] = [
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content: "said" },
  ];
  expect(callOptions(inputOf({ messages, tools, options }))).toMatchObject({
    prompt: [
      { content: [{ type: "tool-call", toolCallId: "c", toolName: "say", input: { input: "hello" } }] },
      { content: [{ type: "tool-result", toolName: "say" }] },
    ],
    tools: [
      {
        type: "function",
        name: "say",
        description: "Say it",
        inputSchema: { properties: { input: { type: "string", pattern: "^(?:[a-z]+)$" } }, required: ["input"] },
      },
    ],
    toolChoice: { type: "tool", toolName: "say" },
  });
  const items = await itemsOf(
    [
      { type: "tool-input-start", id: "d", toolName: "say" },
      { type: "tool-input-delta", id: "d", delta: '{"input": "good\\n' },
      { type: "tool-input-delta", id: "d", delta: 'bye"}' },
      { type: "tool-input-end", id: "d" },
      { type: "tool-call", toolCallId: "e", toolName: "say", input: '{"input":"so"}' },
    ],
    { tools },
  );
  expect(items).toEqual([
    { type: "tool-call-start", id: "d", name: "say" },
    { type: "tool-call-delta", arguments: "good\n" },
    { type: "tool-call-delta", arguments: "bye" },
    { type: "tool-call-end" },
    { type: "tool-call", id: "e", name: "say", arguments: "so" },
  ]);
});

test("a part that the SDK cannot hold is refused with its path", () => {
  const messages: ProgramMessage[] = [
    { role: "user", content: [{ type: "input_audio", input_audio: { data: "", format: "wav" } }] },
  ];
  const failure = expect.objectContaining({
    status: 400,
    message:
      "Invalid content type: this model reads text and images only, and cannot take a part of type 'input_audio'.",
    param: "messages[0].content[0].type",
    code: "unsupported_value",
  }) as unknown;
  expect(() => callOptions(inputOf({ messages }))).toThrow(expect.objectContaining({ failure }));
});
