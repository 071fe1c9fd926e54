import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FailureError } from "../../core/failure.ts";
import type { Message } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { readChatRequest } from "../chat/request.ts";
import { exact } from "../profile.ts";
import { readMessageRequest } from "./request.ts";
import { openSeal } from "../turn-seal.ts";
import { writeMessageRequest } from "./send.ts";

const base: GenerationRequest = {
  id: "req_1",
  model: "m",
  prompt: { kind: "chat", messages: [{ role: "user", content: "Hello" }], template: {} },
  sampling: {},
  limits: {},
  wantsUsage: true,
  stream: false,
  extra: {},
};

const written = (members: Partial<GenerationRequest>, dialect = {}) =>
  JSON.parse(JSON.stringify(writeMessageRequest({ ...base, ...members }, dialect))) as Record<string, unknown>;

const conversation = (...messages: Message[]): Partial<GenerationRequest> => ({
  prompt: { kind: "chat", messages, template: {} },
});

test("the least there is", () => {
  const least = { model: "m", max_tokens: 8192, messages: [{ role: "user", content: "Hello" }] };
  expect(written({})).toEqual({ ...least, cache_control: { type: "ephemeral" } });
  expect(written({ stream: true }, { model: "theirs", add: { max_tokens: 10 } })).toMatchObject({
    model: "theirs",
    stream: true,
    max_tokens: 10,
  });
});

describe("a conversation", () => {
  test("instructions go first, results are the user's, one role in a row is one message", () => {
    const { system, messages } = written(
      conversation(
        { role: "system", content: "Be brief." },
        { role: "user", content: "a" },
        {
          role: "assistant",
          content: [
            { type: "reasoning", text: "Hm.", state: { kind: "signature", value: "sig" } },
            { type: "reasoning", text: "unsigned" },
            { type: "reasoning", text: "", state: { kind: "redacted", value: "sealed" } },
            { type: "reasoning", text: "", state: { kind: "encrypted", value: "theirs" }, id: "rs_1" },
            { type: "text", text: "I look." },
            { type: "tool-call", id: "call 1", name: "look", arguments: '{"at":1}' },
            { type: "tool-call", id: "call_2", name: "draw", arguments: "{at: 2" },
          ],
        },
        { role: "tool", toolCallId: "call 1", content: "no such file", isError: true },
        { role: "tool", toolCallId: "call_2", content: [{ type: "image", url: "data:image/png;base64,AAAA" }] },
        { role: "developer", content: "Now in French." },
        { role: "user", content: "Go on." },
      ),
    );
    expect(system).toBe("Be brief.");
    expect(messages).toEqual([
      { role: "user", content: "a" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm.", signature: "sig" },
          { type: "redacted_thinking", data: "sealed" },
          { type: "text", text: "I look." },
          { type: "tool_use", id: "call_1", name: "look", input: { at: 1 } },
          { type: "tool_use", id: "call_2", name: "draw", input: { INVALID_JSON: "{at: 2" } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "call_1", content: "no such file", is_error: true },
          {
            type: "tool_result",
            tool_use_id: "call_2",
            content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }],
          },
          { type: "text", text: "<system-reminder>\nNow in French.\n</system-reminder>\n\nGo on." },
        ],
      },
    ]);
  });

  test("files", () => {
    const { messages } = written(
      conversation({
        role: "user",
        content: [
          { type: "file", name: "T", text: "D" },
          { type: "file", data: "data:application/pdf;base64,AAAA" },
          { type: "file", url: "https://example.com/a.pdf" },
          { type: "image", url: "https://example.com/a.png" },
        ],
      }),
    );
    expect(messages).toEqual([
      {
        role: "user",
        content: [
          { type: "document", source: { type: "text", media_type: "text/plain", data: "D" }, title: "T" },
          { type: "document", source: { type: "base64", media_type: "application/pdf", data: "AAAA" } },
          { type: "document", source: { type: "url", url: "https://example.com/a.pdf" } },
          { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
        ],
      },
    ]);
    const audio = conversation({ role: "user", content: [{ type: "audio", data: "", format: "wav" }] });
    expect(() => written(audio)).toThrow(FailureError);
  });
});

describe("what else a chat client asks", () => {
  const chat = (members: Record<string, unknown>) =>
    written(readChatRequest({ model: "m", messages: [{ role: "user", content: "a" }], ...members }, "req_1").request);
  const tools = [
    { type: "function", function: { name: "f", description: "d", parameters: { type: "object" }, strict: true } },
    { type: "function", function: { name: "g" } },
    {
      type: "custom",
      custom: { name: "patch", format: { type: "grammar", grammar: { syntax: "lark", definition: "start: /a+/" } } },
    },
  ];

  test("limits, sampling, tools", () => {
    expect(
      chat({ max_tokens: 5, temperature: 1.5, top_p: 0.9, stop: ["END", " "], user: "u", seed: 1, tools }),
    ).toEqual({
      model: "m",
      max_tokens: 5,
      temperature: 1,
      top_p: 0.9,
      stop_sequences: ["END"],
      metadata: { user_id: "u" },
      cache_control: { type: "ephemeral" },
      messages: [{ role: "user", content: "a" }],
      tools: [
        { name: "f", description: "d", input_schema: { type: "object" }, strict: true },
        { name: "g", input_schema: { type: "object" } },
        {
          name: "patch",
          // The grammar goes along in words: the model did not get it.
          description:
            "Call this function with one argument, `input`: the whole text, unchanged.\n\nThe text must match this Lark grammar:\n\nstart: /a+/",
          input_schema: {
            type: "object",
            properties: { input: { type: "string" } },
            required: ["input"],
            additionalProperties: false,
          },
        },
      ],
    });
  });

  // Every system message was written at the beginning: each later one changed the start of the prompt, and the cache was of no use.
  test("a later system message keeps its place, in the user's turn", () => {
    const later = [
      { role: "system", content: "S" },
      { role: "user", content: "a" },
      { role: "assistant", content: "b" },
      { role: "system", content: "R" },
      { role: "user", content: "c" },
    ];
    expect(chat({ messages: later })).toMatchObject({
      system: "S",
      messages: [
        { role: "user", content: "a" },
        { role: "assistant", content: "b" },
        { role: "user", content: "<system-reminder>\nR\n</system-reminder>\n\nc" },
      ],
    });
  });

  test("the choice of tools", () => {
    const chosen = (members: Record<string, unknown>) => chat({ tools, ...members })["tool_choice"];
    expect(chosen({})).toBeUndefined();
    expect(chosen({ tool_choice: "none" })).toEqual({ type: "none" });
    expect(chosen({ tool_choice: "required" })).toEqual({ type: "any" });
    expect(chosen({ tool_choice: { type: "function", function: { name: "g" } } })).toEqual({ type: "tool", name: "g" });
    expect(chosen({ parallel_tool_calls: false })).toEqual({ type: "auto", disable_parallel_tool_use: true });
    expect(chosen({ parallel_tool_calls: false, tool_choice: "none" })).toEqual({ type: "none" });
  });

  test("effort and schema", () => {
    const json_schema = { name: "n", schema: { type: "object" }, strict: true };
    expect(
      chat({ reasoning_effort: "high", temperature: 0.5, response_format: { type: "json_schema", json_schema } }),
    ).toMatchObject({
      thinking: { type: "adaptive" },
      output_config: { effort: "high", format: { type: "json_schema", schema: { type: "object" } } },
    });
    expect(chat({ reasoning_effort: "high", temperature: 0.5 })).not.toHaveProperty("temperature");
    expect(chat({ reasoning_effort: "none" })["thinking"]).toEqual({ type: "disabled" });
    // Anthropic refuses a forced call together with thinking.
    expect(chat({ reasoning_effort: "low", tools, tool_choice: "required" })).not.toHaveProperty("thinking");
    expect(() => chat({ guided_regex: "a+" })).toThrow(FailureError);
  });
});

test("a Messages request is sent as it came, without reasoning that this server has signed", () => {
  const own = { type: "thinking", thinking: "", signature: openSeal.seal({ text: "Hm." }) };
  const theirs = { type: "thinking", thinking: "So.", signature: "sig" };
  const body = {
    model: "m",
    max_tokens: 5,
    messages: [
      { role: "user", content: "a" },
      { role: "assistant", content: [own, theirs, { type: "text", text: "b", cache_control: { type: "ephemeral" } }] },
      { role: "user", content: "c" },
    ],
    context_management: { edits: [] },
    brand_new: 1,
    stream: true,
  };
  const header = (name: string) => (name === "anthropic-beta" ? "a,b" : undefined);
  const { request } = readMessageRequest(body, "req_1", { header });
  expect(request.passthrough?.headers).toEqual({ "anthropic-beta": "a,b" });
  expect(writeMessageRequest(request, { model: "theirs" })).toEqual({
    ...body,
    model: "theirs",
    messages: [
      body.messages[0],
      { role: "assistant", content: [theirs, { type: "text", text: "b", cache_control: { type: "ephemeral" } }] },
      body.messages[2],
    ],
  });
});

// What is written is what this API takes: its own reader, as strict as Anthropic, reads it and finds the same in it.
test("for every conversation: what is written is read as the same", () => {
  const words = fc
    .string({ minLength: 1, maxLength: 5 })
    .filter((text) => text.trim() !== "" && !text.startsWith("x-a"));
  const turn = fc.record({
    user: words,
    reasoning: fc.option(words),
    texts: fc.array(words, { maxLength: 2 }),
    calls: fc.array(fc.tuple(words, fc.dictionary(words, fc.integer())), { maxLength: 2 }),
    failed: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(turn, { maxLength: 3 }), words, (turns, last) => {
      let ids = 0;
      const messages = turns.flatMap(({ user, reasoning, texts, calls, failed }): Message[] => {
        const made = calls.map(([, input]) => ({
          type: "tool-call" as const,
          id: `t${ids++}`,
          name: "f",
          arguments: JSON.stringify(input),
        }));
        const parts = [
          ...(reasoning === null
            ? []
            : [{ type: "reasoning" as const, text: reasoning, state: { kind: "signature" as const, value: "s" } }]),
          ...texts.map((text) => ({ type: "text" as const, text })),
          ...made,
          { type: "text" as const, text: "." },
        ];
        const results = made.map(({ id }, at): Message => ({
          role: "tool",
          content: calls[at]?.[0] ?? "",
          toolCallId: id,
          name: "f",
          ...(failed && { isError: true }),
        }));
        return [
          { role: "user", content: [{ type: "text", text: user }] },
          { role: "assistant", content: parts },
          ...results,
        ];
      });
      const request = conversation({ role: "system", content: "S" }, ...messages, {
        role: "user",
        content: [{ type: "text", text: last }],
      });
      const again = readMessageRequest(written(request), "req_1", { profile: exact }).request;
      const withoutPaths = (prompt: GenerationRequest["prompt"]) =>
        prompt.kind === "chat" ? prompt.messages.map((message) => flat({ ...message, path: "" })) : [];
      expect(withoutPaths(again.prompt)).toEqual(withoutPaths(request.prompt ?? base.prompt));
    }),
  );
});

/** A single text part equals a string. */
function flat(message: Message): unknown {
  const { content } = message;
  const [only] = typeof content === "string" || content === null ? [] : content;
  return content?.length === 1 && typeof only === "object" && only.type === "text"
    ? { ...message, content: only.text }
    : message;
}

// Two calls had one id after it was written with the characters that Anthropic accepts, and the request was refused, for good.
test("each call has an id of its own, and each result the id of its call", () => {
  const call = (id: string) => ({ type: "tool-call", id, name: "f", arguments: "{}" }) as const;
  const result = (toolCallId: string, content: string) => ({ role: "tool", toolCallId, content }) as const;
  const { messages } = written(
    conversation(
      { role: "user", content: "Go." },
      { role: "assistant", content: [call("f.a:0"), call("f_a_0")] },
      result("f_a_0", "second"),
      result("f.a:0", "first"),
      { role: "assistant", content: [call("f.a:0")] },
      result("f.a:0", "third"),
    ),
  );
  const blocks = (messages as { content: Record<string, unknown>[] | string }[]).flatMap(({ content }) =>
    Array.isArray(content) ? content : [],
  );
  const calls = blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id);
  const results = Object.fromEntries(
    blocks.filter(({ type }) => type === "tool_result").map((block) => [block["content"], block["tool_use_id"]]),
  );
  expect(new Set(calls).size).toBe(3);
  for (const id of calls) expect(id).toMatch(/^[a-zA-Z0-9_-]+$/);
  expect([results["first"], results["second"], results["third"]]).toEqual(calls);
});
