import Anthropic from "@anthropic-ai/sdk";
import OpenAI7 from "openai-7";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import {
  accumulate,
  accumulateStream,
  readChatStream,
  readMessagesStream,
  readResponsesStream,
  repair,
  writeChatStream,
  writeMessagesAnswer,
  writeMessagesStream,
  writeResponsesAnswer,
  writeResponsesStream,
} from "../../src/index.ts";
import type { GenerationEvent } from "../../src/index.ts";

// The official SDKs read what the library's writers write; the library's readers read what the SDKs iterate over.

const events: readonly GenerationEvent[] = [
  { type: "start", choice: 0 },
  { type: "reasoning-delta", choice: 0, text: "Hm" },
  { type: "text-delta", choice: 0, text: "Grüße " },
  { type: "text-delta", choice: 0, text: "🌍" },
  { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "add" },
  { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"a":' },
  { type: "tool-call-delta", choice: 0, index: 0, arguments: "1}" },
  { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
  { type: "finish", choice: 0, reason: "tool-calls" },
  { type: "usage", usage: { promptTokens: 3, completionTokens: 4, totalTokens: 7 } },
  { type: "end", end: { kind: "done" } },
];

const failing: readonly GenerationEvent[] = [
  ...events.slice(0, 3),
  { type: "end", end: { kind: "upstream-error", failure: { message: "It broke.", status: 502, kind: "bad-answer" } } },
];

/** A `fetch` that answers with the stream, or the body. */
function answering(answer: AsyncIterable<string> | string): typeof fetch {
  const isBody = typeof answer === "string";
  const type = isBody ? "application/json" : "text/event-stream";
  return async () =>
    new Response(isBody ? answer : ReadableStream.from(answer).pipeThrough(new TextEncoderStream()), {
      headers: { "content-type": type },
    });
}

const shared = { apiKey: "none", maxRetries: 0 };

describe.each([
  ["openai 6", OpenAI],
  ["openai 7", OpenAI7 as unknown as typeof OpenAI],
])("%s", (_, Client) => {
  const client = (answer: AsyncIterable<string> | string): OpenAI =>
    new Client({ ...shared, baseURL: "http://127.0.0.1/v1", fetch: answering(answer) });

  test.each(["lean", "exact"] as const)("reads a response that is written in %s, streamed and whole", async (wire) => {
    const stream = client(writeResponsesStream(events, { model: "m", wire })).responses.stream({ input: "Hi" });
    const streamed = await stream.finalResponse();
    const whole = await client(writeResponsesAnswer(accumulate(events), { model: "m", wire })).responses.create({
      input: "Hi",
    });
    for (const response of [streamed, whole]) {
      expect(response.output_text).toBe("Grüße 🌍");
      expect(response.output.at(-1)).toMatchObject({ type: "function_call", name: "add", arguments: '{"a":1}' });
      expect(response.usage).toMatchObject({ input_tokens: 3, output_tokens: 4 });
    }
  });

  test("gives its events to readResponsesStream", async () => {
    const stream = await client(writeResponsesStream(events, { model: "m" })).responses.create({
      input: "Hi",
      stream: true,
    });
    const { choices, end } = await accumulateStream(readResponsesStream(stream));
    expect(choices[0]).toMatchObject({ text: "Grüße 🌍", reasoning: "Hm", toolCalls: [{ id: "call_1", name: "add" }] });
    expect(end.kind).toBe("done");
  });

  test("throws for a failure", async () => {
    const stream = await client(writeResponsesStream(failing, { model: "m" })).responses.create({
      input: "Hi",
      stream: true,
    });
    const read = async (): Promise<void> => {
      for await (const event of stream) expect(event.type).not.toBe("response.completed");
    };
    await expect(read()).rejects.toThrow(/It broke\./);
  });
});

describe("@anthropic-ai/sdk", () => {
  const client = (answer: AsyncIterable<string> | string): Anthropic =>
    new Anthropic({ ...shared, baseURL: "http://127.0.0.1", fetch: answering(answer) });
  const request = { model: "m", max_tokens: 100, messages: [{ role: "user", content: "Hi" }] } as const;

  test.each(["lean", "exact"] as const)("reads a message that is written in %s, streamed and whole", async (wire) => {
    const streamed = await client(writeMessagesStream(events, { model: "m", wire }))
      .messages.stream({ ...request, messages: [...request.messages] })
      .finalMessage();
    const whole = await client(writeMessagesAnswer(accumulate(events), { model: "m", wire })).messages.create({
      ...request,
      messages: [...request.messages],
    });
    for (const message of [streamed, whole]) {
      expect(message.content).toMatchObject([
        { type: "thinking", thinking: "Hm" },
        { type: "text", text: "Grüße 🌍" },
        { type: "tool_use", name: "add", input: { a: 1 } },
      ]);
      expect(message.stop_reason).toBe("tool_use");
      expect(message.usage).toMatchObject({ input_tokens: 3, output_tokens: 4 });
    }
  });

  test("gives its events to readMessagesStream", async () => {
    const stream = await client(writeMessagesStream(events, { model: "m" })).messages.create({
      ...request,
      messages: [...request.messages],
      stream: true,
    });
    const { choices, end } = await accumulateStream(readMessagesStream(stream));
    expect(choices[0]).toMatchObject({ text: "Grüße 🌍", reasoning: "Hm", toolCalls: [{ name: "add" }] });
    expect(end.kind).toBe("done");
  });

  test("throws for a failure", async () => {
    const stream = client(writeMessagesStream(failing, { model: "m" })).messages.stream({
      ...request,
      messages: [...request.messages],
    });
    await expect(stream.finalMessage()).rejects.toThrow(/It broke\./);
  });
});

describe("repair", () => {
  const written = { chat: writeChatStream, responses: writeResponsesStream, messages: writeMessagesStream };
  const readers = { chat: readChatStream, responses: readResponsesStream, messages: readMessagesStream };
  const errors = { chat: /^data: \{"error":/m, responses: /^event: response\.failed$/m, messages: /^event: error$/m };

  test.each(["chat", "responses", "messages"] as const)(
    "%s: an answer that is right stays as it is; one that was cut gets its error",
    async (api) => {
      let text = "";
      for await (const part of written[api](events, { model: "m", includeReasoning: true, includeUsage: true }))
        text += part;
      expect(repair(api, text)).toMatchObject({ body: text, repairs: [], end: { kind: "done" } });
      expect(repair("auto", text).body).toBe(text);
      const cut = repair(api, text.slice(0, text.indexOf("🌍")));
      expect(cut.end.kind).toBe("truncated");
      expect(cut.body).toMatch(errors[api]);
      const { choices, end } = await accumulateStream(readers[api](cut.body));
      expect(choices[0]?.reasoning).toBe("Hm");
      expect(end.kind).toBe("upstream-error");
    },
  );

  test("lists what it repaired", () => {
    const broken = 'data: {"type":"message_start","message":{"model":"m"}}\n\ndata: {"type":"message_stop"}\n\n';
    const { repairs, body } = repair("messages", broken, { wire: "exact" });
    expect(repairs.length).toBeGreaterThan(0);
    expect(body).toMatch(/^event: message_start\n/);
  });
});
