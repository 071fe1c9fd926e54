import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { startGateway } from "./gateway.ts";
import { startAnthropic } from "../doubles/anthropic.ts";
import { startChat } from "../doubles/chat-server.ts";
import type { Json } from "../doubles/chat-server.ts";
import { anthropic, deepseek, groq, openai, sglang, vllm, vllmThatCuts } from "../doubles/limits.ts";
import type { Refuse } from "../doubles/limits.ts";
import { closeAfterTest } from "../support/close-after-test.ts";

/*
 * Agents ask for answers of 32,000 or 128,000 tokens. Servers that refuse what does not fit were answered for: vLLM's message about the limit
 * became "prompt is too long: 12037 tokens > 32768 maximum", Claude Code compacted a conversation that fits, and stopped.
 */

async function serve(
  refuse: Refuse,
  {
    listed = {},
    counted = false,
    ...options
  }: Parameters<typeof startGateway>[1] & { listed?: Json; counted?: number | false } = {},
): Promise<{ bodies: readonly Json[]; gateway: TruewireServer }> {
  const bodies: Json[] = [];
  const refusal = (body: Json) => {
    bodies.push(body);
    return refuse((limitIn(body) ?? undefined) as number | undefined);
  };
  const isAnthropic = options.api === "messages";
  const server = isAnthropic
    ? await startAnthropic({ accounts: { k: "a" }, refusal, counted, answer: () => ({ text: "Hello" }) })
    : await startChat({ refusal, listed }, "Hello");
  closeAfterTest(() => server.close());
  const gateway = await startGateway(server.url, {
    retries: 0,
    key: "k",
    ...(isAnthropic && { models: { m: "claude-opus-4-6" } }),
    ...options,
  });
  closeAfterTest(() => gateway.close(0));
  return { bodies, gateway };
}

interface Asked {
  readonly status: number;
  readonly text: string;
}

type Api = "chat" | "responses" | "messages";

/** A request for an answer of `limit` tokens, as each API's agents write it. */
async function ask(gateway: TruewireServer, api: Api, limit: number | undefined, stream: boolean): Promise<Asked> {
  const messages = [{ role: "user", content: "Fix the bug." }];
  const request = {
    chat: { path: "/chat/completions", body: { messages, max_completion_tokens: limit } },
    responses: { path: "/responses", body: { input: "Fix the bug.", max_output_tokens: limit } },
    messages: { path: "/messages?beta=true", body: { messages, max_tokens: limit } },
  }[api];
  const response = await fetch(`${gateway.url}/v1${request.path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "m", stream, ...request.body }),
  });
  return { status: response.status, text: await response.text() };
}

const apis = ["chat", "responses", "messages"] as const;
const every = apis.flatMap((api) => [false, true].map((stream): [Api, boolean] => [api, stream]));
const limitIn = (body: Readonly<Record<string, unknown>> | undefined): unknown =>
  body?.["max_completion_tokens"] ?? body?.["max_tokens"];

describe("a limit that does not fit is lowered to what does, before anything is shown", () => {
  const servers: readonly [string, Refuse, number | undefined][] = [
    ["vLLM 0.9 to 0.13", vllm(32_768, 12_037), 20_731],
    ["vLLM since 0.16", vllmThatCuts(32_768, 12_037), undefined],
    ["SGLang", sglang(32_768, 12_037), 20_730],
    ["DeepSeek", deepseek, 8192],
    ["Groq", groq, 8192],
    ["OpenAI", openai, 16_384],
  ];
  describe.each(servers)("%s", (_, refuse, most) => {
    test.each(every)("%s, streamed: %j", async (api, stream) => {
      const { bodies, gateway } = await serve(refuse);
      const { status, text } = await ask(gateway, api, 32_000, stream);
      expect(status).toBe(200);
      expect(text).toContain("Hello");
      expect(text).not.toMatch(/too (?:long|large)/);
      expect(bodies.map(limitIn)).toEqual([32_000, most]);
      // Nothing else of the request changes.
      const [first, second] = bodies;
      const limits = { max_tokens: undefined, max_completion_tokens: undefined };
      expect({ ...second, ...limits }).toEqual({ ...first, ...limits });
    });
  });

  test("Anthropic's own API, and the budget of its reasoning", async () => {
    const { bodies, gateway } = await serve(anthropic, { api: "messages" });
    const response = await fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
      body: JSON.stringify({
        model: "m",
        max_tokens: 32_000,
        thinking: { type: "enabled", budget_tokens: 31_999 },
        messages: [{ role: "user", content: "Hi" }],
      }),
    });
    expect(await response.text()).toContain("Hello");
    expect(bodies.at(-1)).toMatchObject({
      max_tokens: 8192,
      thinking: { type: "enabled", budget_tokens: 4096 },
    });
  });

  test("an API that cannot ask for all room has the server count the prompt", async () => {
    const { bodies, gateway } = await serve(vllmThatCuts(32_768, 12_037), { api: "messages", counted: 12_037 });
    expect((await ask(gateway, "messages", 32_000, true)).text).toContain("Hello");
    expect(bodies.map(limitIn)).toEqual([32_000, 20_731]);
  });

  test("a server that cannot count is not asked again, and its words are the client's", async () => {
    const { bodies, gateway } = await serve(vllmThatCuts(32_768, 12_037), { api: "messages" });
    const { status, text } = await ask(gateway, "messages", 32_000, true);
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({
      type: "error",
      error: { type: "invalid_request_error", message: expect.stringMatching(/^This model's maximum context length/) },
    });
    expect(bodies).toHaveLength(1);
  });

  test("a text that is continued gets all room", async () => {
    const { bodies, gateway } = await serve(vllmThatCuts(32_768, 12_037));
    const response = await fetch(`${gateway.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", prompt: "Once", max_tokens: 32_000 }),
    });
    await response.text();
    // Absent, it would be 16.
    expect(bodies.map(({ max_tokens: limit }) => limit)).toEqual([32_000, null]);
  });

  test("a server whose own default is too high gets a limit", async () => {
    // The API of DeepInfra: a request without a limit asks for the whole context.
    const { bodies, gateway } = await serve((limit = 32_768) => vllm(32_768, 12_037)(limit));
    expect((await ask(gateway, "chat", undefined, false)).text).toContain("Hello");
    expect(bodies.map(limitIn)).toEqual([undefined, 20_731]);
  });

  test("members that the configuration renames are lowered under their own names", async () => {
    const { bodies, gateway } = await serve(() => undefined, {
      listed: { max_model_len: 4096 },
      requests: { maxTokensMember: "max_tokens", rename: { max_tokens: "max_new_tokens" } },
    });
    await ask(gateway, "chat", 32_000, false);
    expect(bodies).toMatchObject([{ max_new_tokens: 4095 }]);
  });
});

const captures = "../shared/client-captures/claude-code-2.1.330-max-tokens.jsonl";
if (!existsSync(captures)) console.log("skipped: no ../shared/client-captures to send again");

test.skipIf(!existsSync(captures))("captured requests of Claude Code are answered by vLLM", async () => {
  const { bodies, gateway } = await serve(vllm(32_768, 12_037), { listed: { max_model_len: 32_768 } });
  for (const line of readFileSync(captures, "utf8").trim().split("\n")) {
    const { url, headers, body } = JSON.parse(line) as { url: string; headers: Record<string, string>; body: object };
    const response = await fetch(gateway.url + url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": headers["anthropic-beta"] ?? "",
      },
      body: JSON.stringify({ ...body, model: "m" }),
    });
    expect(await response.text()).toContain("Hello");
    // 128,000 is more than the context, and the context is more than the prompt leaves of it.
    expect(bodies.slice(-2).map(limitIn)).toEqual([32_767, 20_731]);
  }
});

describe("a limit that cannot fit the context that the server lists", () => {
  test.each(every)("is lowered before it is sent (%s, streamed: %j)", async (api, stream) => {
    const { bodies, gateway } = await serve(() => undefined, { listed: { max_model_len: 32_768 } });
    expect((await ask(gateway, api, 128_000, stream)).text).toContain("Hello");
    expect(bodies.map(limitIn)).toEqual([32_767]);
  });

  test.each([32_000, 32_767, 1])("and one of %i tokens, which may fit, is sent as it is", async (limit) => {
    const { bodies, gateway } = await serve(() => undefined, { listed: { max_model_len: 32_768 } });
    await ask(gateway, "messages", limit, false);
    expect(bodies.map(limitIn)).toEqual([limit]);
  });

  test("a context that only describes the model lowers nothing: llama.cpp may run it with more", async () => {
    const { bodies, gateway } = await serve(() => undefined, { listed: { meta: { n_ctx_train: 8192 } } });
    await ask(gateway, "messages", 32_000, false);
    expect(bodies.map(limitIn)).toEqual([32_000]);
  });
});

describe("never more than once", () => {
  test.each(apis)("a server that refuses again has the last word (%s)", async (api) => {
    const message = "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]";
    const { bodies, gateway } = await serve(() => ({ status: 400, body: { error: { message } } }), { retries: 2 });
    const { status, text } = await ask(gateway, api, 32_000, true);
    expect(status).toBe(400);
    expect((JSON.parse(text) as { error: object }).error).toMatchObject({ message });
    expect(text).not.toContain("context_length_exceeded");
    expect(bodies).toHaveLength(2);
  });

  test("OpenAI's code for a long prompt does not stand beside a limit", async () => {
    const message =
      "This model's maximum context length is 8192 tokens. However, you requested 8256 tokens (64 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.";
    const error = { message, type: "invalid_request_error", param: "messages", code: "context_length_exceeded" };
    const { gateway } = await serve(() => ({ status: 400, body: { error } }));
    const { text } = await ask(gateway, "responses", 8192, false);
    expect(JSON.parse(text)).toMatchObject({ error: { message, code: null } });
  });
});

describe("a prompt that leaves no room is too long, in the client's words", () => {
  const full: readonly [string, Refuse][] = [
    ["vLLM", vllm(32_768, 40_000)],
    ["vLLM since 0.16", vllmThatCuts(32_768, 40_000)],
    ["SGLang", sglang(32_768, 40_000)],
  ];
  test.each(full)("%s", async (name, refuse) => {
    const { bodies, gateway } = await serve(refuse);
    // What vLLM's newer versions count of a prompt is cut at its context.
    const asked = name === "vLLM since 0.16" ? 32_769 : 40_000;
    const chat = await ask(gateway, "chat", 100, false);
    expect(chat.status).toBe(400);
    expect(JSON.parse(chat.text)).toMatchObject({
      error: { type: "invalid_request_error", code: "context_length_exceeded" },
    });
    const responses = await ask(gateway, "responses", 100, true);
    expect(JSON.parse(responses.text)).toMatchObject({ error: { param: "input", code: "context_length_exceeded" } });
    const messages = await ask(gateway, "messages", 100, true);
    expect(JSON.parse(messages.text)).toMatchObject({
      error: { type: "invalid_request_error", message: `prompt is too long: ${asked} tokens > 32768 maximum` },
    });
    if (name !== "vLLM since 0.16") expect(bodies).toHaveLength(3);
  });
});
