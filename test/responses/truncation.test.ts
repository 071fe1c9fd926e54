import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startLocalAndChat, type LocalAndChat } from "../support/local-and-chat.ts";
import { json } from "../support/transports.ts";
import { say } from "../upstream/scripted-server.ts";

// `truncation: "auto"` was read into the request, documented as supported, and no engine looked at it: a long conversation was refused.

type Json = { readonly [name: string]: unknown };

/** Twenty turns of about 100 characters each, and instructions that must stay. */
const input = [
  { role: "system", content: "Keep this rule." },
  ...Array.from({ length: 20 }, (_, turn) => [
    { role: "user", content: `Question ${turn}? ${"q".repeat(40)}` },
    { role: "assistant", content: `Answer ${turn}. ${"a".repeat(40)}` },
  ]).flat(),
  { role: "user", content: "The last question." },
];
const contextSize = 1024;

describe("truncation of the Responses API", () => {
  let both: LocalAndChat;
  beforeAll(async () => {
    both = await startLocalAndChat(contextSize, (response, body) => {
      const characters = (body["messages"] as { content: string }[]).reduce(
        (sum, { content }) => sum + content.length,
        0,
      );
      if (characters <= contextSize) return say(response, body, "Fine.");
      // Source: vllm/entrypoints/openai/engine/serving.py, https://github.com/vllm-project/vllm.
      const message = `This model's maximum context length is ${contextSize} tokens. However, your request has ${characters} input tokens. Please reduce the length of the input messages.`;
      response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message, type: "BadRequestError", param: null, code: 400 } }));
    });
  });
  afterAll(() => both?.close());

  const post = (body: { readonly model: "local" | "chat"; readonly [name: string]: unknown }): Promise<Response> => {
    return fetch(`${both.url[body.model]}/v1/responses`, json({ max_output_tokens: 20, input, ...body }));
  };
  const ask = async (
    body: Parameters<typeof post>[0],
  ): Promise<{ status: number; answer: Json & { usage?: Json; error?: Json } }> => {
    const response = await post(body);
    return { status: response.status, answer: (await response.json()) as Json };
  };

  test.each(["local", "chat"] as const)("%s: without it, a conversation that is too long is refused", async (model) => {
    for (const truncation of [undefined, "disabled"]) {
      const { status, answer } = await ask({ model, truncation });
      expect([status, answer.error?.["code"]]).toEqual([400, "context_length_exceeded"]);
    }
  });

  test("a local model answers what fits of the conversation", async () => {
    const { status, answer } = await ask({ model: "local", truncation: "auto" });
    expect([status, answer["status"], answer["truncation"]]).toMatchObject([200, expect.any(String), "auto"]);
    const { input_tokens: tokens } = answer.usage as { input_tokens: number };
    expect(tokens).toBeLessThan(contextSize);
    expect(tokens).toBeGreaterThan(contextSize / 3);
    const whole = await ask({ model: "local", truncation: "auto", input: input.slice(-3) });
    const same = await ask({ model: "local", input: input.slice(-3) });
    expect(whole.answer.usage).toMatchObject({ input_tokens: same.answer.usage?.["input_tokens"] });
  });

  test("streamed, the answer begins once", async () => {
    const response = await post({ model: "local", stream: true, truncation: "auto" });
    const text = await response.text();
    expect(text.match(/^event: response\.created$/gm)).toHaveLength(1);
    expect(text).toMatch(/^event: response\.(completed|incomplete)$/m);
  });

  test("a chat server gets the instructions, the newest turns and the last question", async () => {
    const before = both.upstream.requests.length;
    const { status } = await ask({ model: "chat", truncation: "auto" });
    expect(status).toBe(200);
    expect(both.upstream.requests.length - before).toBeLessThan(5);
    const { messages = [] } = (both.upstream.requests.at(-1)?.body ?? {}) as { messages?: { content: string }[] };
    const texts = messages.map(({ content }) => content);
    expect(texts[0]).toBe("Keep this rule.");
    expect(texts[1]).toMatch(/^Question /);
    expect(texts.slice(1)).toEqual(input.slice(1 - texts.length).map(({ content }) => content));
    expect(texts.length).toBeGreaterThan(5);
  });

  test("the Messages API: max_tokens beyond the context is no error", async () => {
    const messages = [{ role: "user", content: "Hi" }];
    const response = await fetch(
      `${both.url.local}/v1/messages`,
      json({ model: "local", max_tokens: 128_000, messages }),
    );
    expect([response.status, await response.json()]).toMatchObject([200, { type: "message", role: "assistant" }]);
  });

  test("what cannot be made to fit is refused", async () => {
    for (const model of ["local", "chat"] as const) {
      const { status, answer } = await ask({ model, truncation: "auto", input: "x".repeat(5000) });
      expect([status, answer.error?.["code"]]).toEqual([400, "context_length_exceeded"]);
    }
  });
});
