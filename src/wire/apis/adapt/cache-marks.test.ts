import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readChatRequest } from "../chat/request.ts";
import { writeChatRequest } from "../chat/send.ts";
import { readMessageRequest } from "../messages/request.ts";
import { writeMessageRequest } from "../messages/send.ts";
import { readOllamaChat } from "../ollama/request.ts";
import { readResponsesRequest } from "../responses/request.ts";
import { fitMarks } from "./cache-marks.ts";
import type { Marked } from "./cache-marks.ts";
import { knownServer } from "./known-servers.ts";
import type { ServerProfile } from "./server-profile.ts";

type Json = Readonly<Record<string, unknown>>;

const mark = { type: "ephemeral" };
const hour = { type: "ephemeral", ttl: "1h" };
const model = "claude-sonnet-4-5";
const openRouter = knownServer("https://openrouter.ai/api/v1", undefined)?.profile ?? {};
const liteLlm = knownServer("http://localhost", { ownedBy: "openai", created: 1_677_610_602 })?.profile ?? {};

const chatRequest = (members: Json) =>
  readChatRequest({ model, messages: [{ role: "user", content: "Hi" }], ...members }, "req_1").request;
const messageRequest = (members: Json) =>
  readMessageRequest({ model, max_tokens: 9, messages: [{ role: "user", content: "Hi" }], ...members }, "req_1")
    .request;
const responsesRequest = (members: Json) => readResponsesRequest({ model, input: "Hi", ...members }, "req_1").request;

const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as Json;
const toMessages = (request: Parameters<typeof writeMessageRequest>[0], profile: ServerProfile = {}) =>
  plain(writeMessageRequest(request, profile));
const toChat = (request: Parameters<typeof writeChatRequest>[0], profile: ServerProfile) =>
  plain(writeChatRequest(request, profile));

const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } };
const call = { id: "toolu_1", type: "function", function: { name: "f", arguments: "{}" } };

describe("marks of a chat client", () => {
  // The marks of chat clients were dropped: Anthropic cached nothing of sessions that asked for it. No test sent a mark in chat's form.
  test("reach a Messages server from parts, messages, tools, calls and results", () => {
    const request = chatRequest({
      tools: [{ ...tool, cache_control: hour }],
      messages: [
        { role: "system", content: [{ type: "text", text: "S", cache_control: hour }] },
        { role: "user", content: "a", cache_control: mark },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "toolu_1", content: "ok", cache_control: mark },
      ],
    });
    expect(toMessages(request)).toMatchObject({
      tools: [{ name: "f", cache_control: hour }],
      system: [{ type: "text", text: "S", cache_control: hour }],
      messages: [
        { role: "user", content: [{ type: "text", text: "a", cache_control: mark }] },
        { role: "assistant", content: [{ type: "tool_use" }] },
        { role: "user", content: [{ type: "tool_result", content: "ok", cache_control: mark }] },
      ],
    });
    expect(toMessages(request)).not.toHaveProperty("cache_control");
  });

  test("LiteLLM's place in a function, marks of calls, OpenAI's breakpoints, and the mark of a request", () => {
    const function_ = { ...tool.function, cache_control: mark };
    expect(toMessages(chatRequest({ tools: [{ ...tool, function: function_ }] }))).toMatchObject({
      tools: [{ cache_control: mark }],
    });
    const messages = [
      {
        role: "user",
        content: [{ type: "text", text: "a", prompt_cache_breakpoint: { mode: "explicit", ttl: "12h" } }],
      },
      { role: "assistant", content: "b", tool_calls: [{ ...call, cache_control: mark }] },
      { role: "tool", tool_call_id: "toolu_1", content: [{ type: "text", text: "ok", cache_control: mark }] },
    ];
    expect(toMessages(chatRequest({ messages }))).toMatchObject({
      messages: [
        { content: [{ cache_control: hour }] },
        { content: [{ type: "text" }, { type: "tool_use", cache_control: mark }] },
        { content: [{ content: [{ text: "ok", cache_control: mark }] }] },
      ],
    });
    expect(toMessages(chatRequest({ cache_control: hour }))["cache_control"]).toEqual(hour);
  });

  test("go on to chat servers as they came", () => {
    const messages = [{ role: "user", content: [{ type: "text", text: "a", cache_control: mark }] }];
    const tools = [{ ...tool, cache_control: mark }];
    for (const profile of [openRouter, liteLlm]) {
      const body = toChat(chatRequest({ messages, tools }), profile);
      expect(body).toMatchObject({ messages, tools });
      expect(body).not.toHaveProperty("cache_control");
    }
  });
});

describe("marks of a Messages client", () => {
  const marked = messageRequest({
    tools: [{ name: "f", input_schema: { type: "object" }, cache_control: mark }],
    system: [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.332;" },
      { type: "text", text: "S", cache_control: mark },
    ],
    messages: [
      { role: "user", content: [{ type: "text", text: "a" }] },
      {
        role: "assistant",
        content: [
          { type: "text", text: "b" },
          { type: "tool_use", id: "toolu_1", name: "f", input: {} },
        ],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "ok", is_error: true, cache_control: mark }],
      },
      { role: "user", content: [{ type: "text", text: "c", cache_control: hour }] },
    ],
  });

  // OpenRouter and LiteLLM cache for Anthropic's models what is marked, and got no mark of Claude Code's.
  test.each([
    ["OpenRouter", openRouter],
    ["LiteLLM", liteLlm],
  ])("reach %s", (_, profile) => {
    expect(toChat(marked, profile)).toMatchObject({
      // No shorter time comes before a longer one.
      tools: [{ type: "function", function: { name: "f" }, cache_control: hour }],
      messages: [
        { role: "system", content: [{ type: "text", text: "S", cache_control: hour }] },
        { role: "user", content: [{ type: "text", text: "a" }] },
        { role: "assistant", content: [{ type: "text", text: "b" }], tool_calls: [{ id: "toolu_1" }] },
        { role: "tool", content: [{ type: "text", text: "Error: ok", cache_control: hour }] },
        { role: "user", content: [{ type: "text", text: "c", cache_control: hour }] },
      ],
    });
  });

  test("are not sent to other chat servers", () => {
    const body = toChat(marked, {});
    expect(JSON.stringify(body)).not.toContain("cache_control");
    expect(body).toMatchObject({ messages: [{ content: "S" }, { content: "a" }, {}, {}, { content: "c" }] });
  });

  test("the mark of the request reaches OpenRouter, and is not sent to others", () => {
    const request = messageRequest({ cache_control: hour });
    expect(toChat(request, openRouter)["cache_control"]).toEqual(hour);
    expect(toChat(request, {})).not.toHaveProperty("cache_control");
  });

  test("are kept in a text that is joined with another", () => {
    const request = messageRequest({
      system: "S",
      messages: [
        { role: "user", content: [{ type: "text", text: "a" }] },
        { role: "assistant", content: "b" },
        { role: "system", content: "Note." },
        { role: "user", content: [{ type: "text", text: "c", cache_control: mark }] },
      ],
    });
    const { messages } = toChat(request, liteLlm) as { messages: Json[] };
    expect(messages.at(-1)?.["content"]).toEqual([
      { type: "text", text: "<system-reminder>\nNote.\n</system-reminder>" },
      { type: "text", text: "c", cache_control: mark },
    ]);
  });
});

describe("the automatic mark", () => {
  // 0 of 480 requests of chat and Responses clients had a mark for Anthropic, so nothing of their sessions was cached.
  test("is for clients whose own API caches by itself, towards servers that cache on request", () => {
    const ollama = readOllamaChat({ model, messages: [{ role: "user", content: "Hi" }] }, "req_1").request;
    for (const request of [chatRequest({}), responsesRequest({}), ollama]) {
      expect(toMessages(request)["cache_control"]).toEqual(mark);
      expect(toMessages(request, { automaticCache: false })).not.toHaveProperty("cache_control");
      expect(toChat(request, openRouter)["cache_control"]).toEqual(mark);
      expect(toChat(request, { ...openRouter, model: "anthropic/claude-opus-4.8" })["cache_control"]).toEqual(mark);
      for (const profile of [liteLlm, {}, { ...openRouter, model: "openai/gpt-5.2" }])
        expect(toChat(request, profile)).not.toHaveProperty("cache_control");
    }
    expect(toMessages(messageRequest({}))).not.toHaveProperty("cache_control");
    expect(toChat(messageRequest({}), openRouter)).not.toHaveProperty("cache_control");
  });

  test("is not added to marks of the client, nor where it asks for its own alone", () => {
    const input = [
      { role: "user", content: [{ type: "input_text", text: "a", prompt_cache_breakpoint: { mode: "explicit" } }] },
    ];
    expect(toMessages(responsesRequest({ input }))).not.toHaveProperty("cache_control");
    expect(toMessages(responsesRequest({ prompt_cache_options: { mode: "explicit" } }))).not.toHaveProperty(
      "cache_control",
    );
    expect(toMessages(responsesRequest({ prompt_cache_options: { ttl: "12h" } }))["cache_control"]).toEqual(hour);
  });
});

test("for all marks: at most four are left, the last ones, and no shorter time comes before a longer one", () => {
  const control = fc.constantFrom(mark, hour);
  const block = fc
    .option(control, { nil: undefined })
    .map((own): Marked => (own ? { text: "a", cache_control: own } : { text: "a" }));
  fc.assert(
    fc.property(fc.array(block, { maxLength: 9 }), fc.option(control, { nil: undefined }), (blocks, whole) => {
      const before = blocks.filter((one) => "cache_control" in one);
      const request = fitMarks(blocks, whole);
      const after = blocks.filter((one) => "cache_control" in one);
      expect(after).toEqual(before.slice(-after.length || before.length));
      expect(after).toHaveLength(Math.min(before.length, request ? 3 : 4));
      expect(request).toEqual(whole && !("cache_control" in (blocks.at(-1) ?? {})) ? whole : undefined);
      const times = [...after.map((one) => one["cache_control"]), ...(request ? [request] : [])];
      const lastLong = times.findLastIndex((one) => (one as Json)["ttl"] === "1h");
      for (const time of times.slice(0, Math.max(lastLong, 0))) expect(time).toEqual(hour);
    }),
  );
});
