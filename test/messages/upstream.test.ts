import { afterEach, describe, expect, test } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { post, startGateway } from "../upstream/gateway.ts";
import { startAnthropic } from "../doubles/anthropic.ts";
import { startChat } from "../doubles/chat-server.ts";
import { startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";
import { askMessage } from "./support.ts";
import type { Json } from "./support.ts";
import { until } from "../support/scripted-engine.ts";

const message = {
  id: "msg_01TheirsTheirsTheirsThe",
  type: "message",
  role: "assistant",
  model: "theirs",
  content: [
    { type: "thinking", thinking: "Hm.", signature: "sig" },
    { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } },
    { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [{ type: "web_search_result", url: "u" }] },
    {
      citations: [{ type: "web_search_result_location", cited_text: "c", url: "u", title: "t", encrypted_index: "e" }],
      type: "text",
      text: "Yes.",
    },
  ],
  stop_reason: "pause_turn",
  stop_sequence: null,
  stop_details: null,
  usage: {
    input_tokens: 5,
    cache_creation_input_tokens: 2,
    cache_read_input_tokens: 3,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 2 },
    output_tokens: 4,
    service_tier: "priority",
    inference_geo: "eu",
    server_tool_use: { web_search_requests: 1 },
  },
};

describe("an upstream that speaks the Messages API", () => {
  let upstream: ScriptedServer;
  let gateway: TruewireServer;
  afterEach(async () => {
    await gateway.close();
    await upstream.close();
  });

  async function serve(answer: object | string, status = 200, headers: Record<string, string> = {}): Promise<void> {
    upstream = await startScripted((response) => {
      response.writeHead(status, {
        "content-type": typeof answer === "string" ? "text/event-stream" : "application/json",
        ...headers,
      });
      response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
    });
    gateway = await startGateway(upstream.url, { api: "messages", key: "sk-ant-1", models: { m: "theirs" } });
  }

  test("a client of the same API loses nothing either way", async () => {
    await serve(message, 200, {
      "anthropic-ratelimit-requests-remaining": "7",
      "anthropic-ratelimit-input-tokens-remaining": "1000",
      "anthropic-ratelimit-output-tokens-reset": "2026-11-30T00:00:00Z",
      "request-id": "req_theirs",
    });
    const asked = {
      messages: [{ role: "user", content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }] }],
      tools: [
        { type: "web_search_20250305", name: "web_search" },
        { type: "bash_20250124", name: "bash" },
      ],
      thinking: { type: "adaptive" },
      context_management: { edits: [] },
      from_2027: true,
      temperature: 1,
    };
    const versions = { "anthropic-version": "2026-10-21", "anthropic-beta": "a,b" };
    const answer = await askMessage(gateway, asked, versions);
    expect(answer.message).toEqual({ ...message, model: "m" });
    expect(answer.headers.get("anthropic-ratelimit-requests-remaining")).toBe("7");
    expect(answer.headers.get("anthropic-ratelimit-input-tokens-remaining")).toBe("1000");
    expect(answer.headers.get("anthropic-ratelimit-output-tokens-reset")).toBe("2026-11-30T00:00:00Z");
    expect(answer.headers.get("x-truewire-upstream-request-id")).toBe("req_theirs");
    expect(answer.headers.get("request-id")).not.toBe("req_theirs");
    const [request] = upstream.requests;
    expect(request).toMatchObject({
      path: "/v1/messages",
      body: { model: "theirs", max_tokens: 100, ...asked },
      headers: { "x-api-key": "sk-ant-1", ...versions },
    });
    expect(request?.headers.authorization).toBeUndefined();
  });

  // The SDK's typed errors hang on the code, and Anthropic's support asks for the id.
  test("an error keeps its request id and its details whole, whatever they are", async () => {
    const details = {
      error_code: "of_2027",
      error_visibility: "user_facing",
      trace: "x".repeat(5000),
      more: [{ a: 1 }],
    };
    const error = { type: "invalid_request_error", message: "No.", details };
    await serve({ type: "error", error, request_id: "req_theirs" }, 400, { "request-id": "req_theirs" });
    const answer = await fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": "k" },
      body: JSON.stringify({ model: "m", max_tokens: 10, messages: [{ role: "user", content: "Hi" }] }),
    });
    expect(answer.status).toBe(400);
    expect(answer.headers.get("x-truewire-upstream-request-id")).toBe("req_theirs");
    expect(await answer.json()).toEqual({ type: "error", error, request_id: "req_theirs" });
  });

  test("a chat client is served, and its custom tools are", async () => {
    const call = { type: "tool_use", id: "toolu_1", name: "patch", input: { input: "*** Begin" } };
    await serve({ ...message, content: [call], stop_reason: "tool_use" });
    const custom = { type: "custom", custom: { name: "patch" } };
    const response = await post(gateway, { tools: [custom], n: 2, user: "u", temperature: 0.5 });
    expect(await response.json()).toMatchObject({
      choices: [0, 1].map((index) => ({
        index,
        finish_reason: "tool_calls",
        message: { tool_calls: [{ id: "toolu_1", type: "custom", custom: { name: "patch", input: "*** Begin" } }] },
      })),
      usage: { prompt_tokens: 10, completion_tokens: 8, prompt_tokens_details: { cached_tokens: 3 } },
    });
    expect(upstream.requests).toHaveLength(2);
    expect(upstream.requests[0]?.body).toMatchObject({
      max_tokens: 8192,
      metadata: { user_id: "u" },
      temperature: 0.5,
    });
    // Version 2026-10-21 has no temperature.
    expect(upstream.requests[0]?.headers["anthropic-version"]).toBe("2023-06-01");
    expect(upstream.requests[0]?.body["n"]).toBeUndefined();
  });

  test.each([
    [400, "invalid_request_error", "prompt is too long: 9000 tokens > 8000 maximum", 400, "context_length_exceeded"],
    [401, "authentication_error", "invalid x-api-key", 401, null],
    [529, "overloaded_error", "Overloaded", 503, null],
  ])("an error with status %i is sent in the client's words", async (status, type, words, chatStatus, code) => {
    await serve({ type: "error", error: { type, message: words }, request_id: "req_theirs" }, status, {
      "retry-after": "60",
    });
    const answer = await askMessage(gateway);
    expect(answer.status).toBe(status);
    expect(answer.message).toMatchObject({ type: "error", error: { type, message: words } });
    const chat = await post(gateway, {});
    expect(chat.status).toBe(chatStatus);
    const { error } = (await chat.json()) as { error: Json };
    expect(error).toMatchObject({ message: words, code });
  });

  test("a cut stream is an error", async () => {
    const start = { type: "message_start", message: { id: "msg_1", model: "m" } };
    const block = { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } };
    const delta = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Once" } };
    await serve(
      [start, block, delta].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
    );
    const { message: partial, error } = await askMessage(gateway, { stream: true });
    expect(partial.content).toMatchObject([{ text: "Once" }]);
    expect(error).toMatchObject({ type: "error", error: { type: "api_error" } });
  });

  test("tokens are counted there", async () => {
    await serve({ input_tokens: 17 });
    const response = await fetch(`${gateway.url}/v1/messages/count_tokens`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", system: "S", messages: [{ role: "user", content: "Hi" }] }),
    });
    expect(await response.text()).toBe('{"input_tokens":17}');
    expect(upstream.requests).toMatchObject([
      {
        path: "/v1/messages/count_tokens",
        body: { model: "theirs", system: "S", messages: [{ role: "user", content: "Hi" }] },
      },
    ]);
    expect(Object.keys(upstream.requests[0]?.body ?? {}).toSorted()).toEqual(["messages", "model", "system"]);
  });

  test("a text cannot be continued there, and it is said", async () => {
    await serve(message);
    const response = await fetch(`${gateway.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", prompt: "Once" }),
    });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringContaining("Did you mean to use v1/chat/completions?") as string },
    });
  });

  test("a client that leaves is left there, too", async () => {
    upstream = await startScripted((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1"}}\n\n');
    });
    gateway = await startGateway(upstream.url, { api: "messages", models: ["m"] });
    const controller = new AbortController();
    const asked = fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", max_tokens: 5, stream: true, messages: [{ role: "user", content: "Hi" }] }),
      signal: controller.signal,
    }).catch(() => null);
    await until(() => upstream.open() === 1, "the request reached the upstream");
    controller.abort();
    await until(() => upstream.open() === 0, "the upstream was left");
    await asked;
  });
});

/** A server of the Messages API without `count_tokens`, such as Ollama, made the compaction of Codex a 404; over chat it worked. */
describe("a Messages server that cannot count tokens", () => {
  test.each(["messages", "chat"] as const)(
    "compacts a conversation of Responses as a server of chat does (%s)",
    async (api) => {
      const server =
        api === "chat"
          ? await startChat({}, "Hi")
          : await startAnthropic({ accounts: { k: "a" }, counted: false, answer: () => ({ text: "Hi" }) });
      const gateway = await startGateway(server.url, { api, key: "k", models: { m: "claude-opus-4-6" } });
      const ask = (path: string): Promise<Response> =>
        fetch(`${gateway.url}/v1/responses/${path}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ model: "m", input: "My name is Ada." }),
        });
      const compacted = await ask("compact");
      expect(compacted.status).toBe(200);
      const { object, output, usage } = (await compacted.json()) as { object: string; output: Json[]; usage: Json };
      expect(object).toBe("response.compaction");
      expect(output.map(({ type }) => type)).toEqual(["message", "compaction"]);
      // An estimate: four characters are about a token, the member's name `content` counts.
      expect(usage).toMatchObject({ input_tokens: 6, total_tokens: 6 });
      const counted = await ask("input_tokens");
      expect(await counted.json()).toMatchObject({ input_tokens: 6 });
      expect(counted.headers.get("x-truewire-estimate")).toBe("tokens");
      await gateway.close();
      await server.close();
    },
  );
});
