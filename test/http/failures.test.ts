import { afterEach, describe, expect, test } from "vitest";
import { answer, done, failed, ScriptedEngine } from "../support/scripted-engine.ts";
import type { Script } from "../support/scripted-engine.ts";
import { chat, events, serving, transports } from "../support/transports.ts";
import type { Api } from "../support/transports.ts";

const [firstPiece] = answer(["Hello"]);
if (!firstPiece) throw new Error("an answer begins with a piece");

describe.each(transports)("failures through $name", ({ open }) => {
  let api: Api;
  afterEach(() => api.close());
  const opened = async (script: Script): Promise<void> => {
    api = await open(serving(new ScriptedEngine(script)));
  };

  test.each([false, true])("before anything was sent, status and headers are kept (stream: %j)", async (stream) => {
    await opened(function* () {
      const failure = {
        message: "Too many.",
        status: 429,
        kind: "overloaded" as const,
        code: "rate_limit_exceeded",
        retryAfterSeconds: 2.2,
      };
      yield [failed("rejected", { ...failure, headers: { "x-ratelimit-limit-requests": "10" } })];
    });
    const response = await api.fetch("/v1/chat/completions", chat("x", { stream }));
    expect(response.status).toBe(429);
    expect(response.headers.get("retry-after")).toBe("3");
    expect(response.headers.get("x-ratelimit-limit-requests")).toBe("10");
    expect(await response.json()).toEqual({
      error: { message: "Too many.", type: "requests", param: null, code: "rate_limit_exceeded" },
    });
  });

  test("a start without text is not yet an answer: the failure behind it has its status", async () => {
    await opened(function* () {
      yield [{ type: "start", choice: 0 }, failed("upstream-error", { status: 502 })];
    });
    expect((await api.fetch("/v1/chat/completions", chat("x", { stream: true }))).status).toBe(502);
  });

  test.each([
    ["rejected", 400],
    ["engine-error", 503],
    ["upstream-error", 502],
    ["idle-timeout", 504],
    ["truncated", 502],
    ["shutdown", 503],
  ] as const)("not streamed, %s is a %i even after some text", async (kind, status) => {
    await opened(function* () {
      yield firstPiece;
      yield [failed(kind, { status })];
    });
    const response = await api.fetch("/v1/chat/completions", chat("x"));
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { message: "It broke." } });
  });

  test("mid-stream it is the error object and [DONE], and no finish chunk is invented", async () => {
    await opened(function* () {
      yield firstPiece;
      yield [failed("upstream-error", { message: "Overloaded.", sourceType: "overloaded_error", code: "overloaded" })];
    });
    const response = await api.fetch("/v1/chat/completions", chat("x", { stream: true }));
    expect(response.status).toBe(200);
    const chunks = events(await response.text());
    expect(chunks.slice(-2)).toEqual([
      // The type is Anthropic's; OpenAI has no such type.
      { error: { message: "Overloaded.", type: "server_error", param: null, code: "overloaded" } },
      "data: [DONE]",
    ]);
    expect(JSON.stringify(chunks)).not.toMatch(/"finish_reason":"/);
  });

  test.each([false, true])(
    "an exception in an engine is a 500 that does not tell its inside (stream: %j)",
    async (stream) => {
      await opened(() => {
        throw new Error("the secret path /etc/x");
      });
      const response = await api.fetch("/v1/chat/completions", chat("x", { stream }));
      expect(response.status).toBe(500);
      const text = await response.text();
      expect(text).not.toContain("secret");
      expect(JSON.parse(text)).toMatchObject({ error: { type: "server_error" } });
    },
  );

  test("an exception mid-stream is an error event and [DONE]", async () => {
    await opened(function* () {
      yield firstPiece;
      throw new Error("the secret path /etc/x");
    });
    const text = await (await api.fetch("/v1/chat/completions", chat("x", { stream: true }))).text();
    expect(text).not.toContain("secret");
    expect(events(text).slice(-2)).toMatchObject([{ error: { type: "server_error" } }, "data: [DONE]"]);
  });

  test("an engine that stops without an end is a truncated one, never a clean end", async () => {
    await opened(function* () {
      yield firstPiece;
    });
    const streamed = events(await (await api.fetch("/v1/chat/completions", chat("x", { stream: true }))).text());
    expect(streamed.slice(-2)).toMatchObject([{ error: { type: "server_error" } }, "data: [DONE]"]);
    expect((await api.fetch("/v1/chat/completions", chat("x"))).status).toBe(502);
  });

  test("what an engine says after its end is not sent", async () => {
    await opened(function* () {
      yield firstPiece;
      yield [{ type: "finish", choice: 0, reason: "stop" }, done];
      yield firstPiece;
    });
    const text = await (await api.fetch("/v1/chat/completions", chat("x", { stream: true }))).text();
    expect(text.match(/Hello/g)).toHaveLength(1);
    expect(text.match(/\[DONE\]/g)).toHaveLength(1);
  });

  test("a request that is not right is refused before the engine hears of it, streamed or not", async () => {
    let heard = 0;
    await opened(() => {
      heard++;
      return answer(["x"]);
    });
    for (const stream of [false, true]) {
      const response = await api.fetch("/v1/chat/completions", chat("x", { stream, messages: [] }));
      expect(response.status).toBe(400);
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(await response.json()).toMatchObject({ error: { param: "messages", code: "empty_array" } });
    }
    expect(heard).toBe(0);
  });
});
