import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GenerationEvent, GenerationFailure } from "../../src/wire/core/events.ts";
import { FailureError } from "../../src/wire/core/failure.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { json, serving, transports } from "../support/transports.ts";
import type { Api } from "../support/transports.ts";

type Json = { readonly [name: string]: unknown };

const key = "sk-ant-0123456789";
const failures: Readonly<Record<string, GenerationEvent>> = {
  overflow: ended({
    kind: "context-overflow",
    message: "Too long.",
    status: 400,
    tokens: { asked: 12_345, most: 8192 },
  }),
  full: ended({ kind: "overloaded", message: "64 requests wait.", status: 429, retryAfterSeconds: 2 }),
};

function ended(failure: GenerationFailure): GenerationEvent {
  return { type: "end", end: { kind: "rejected", failure } };
}

function engine(): ScriptedEngine {
  const scripted = new ScriptedEngine(
    ({ model }) => {
      const failure = failures[model];
      return failure ? [[failure]] : answer(["Hel", "lo"]);
    },
    "m",
    "overflow",
    "full",
  );
  Object.assign(scripted.handlers, {
    "count-tokens": (request: { model: string }) =>
      request.model === "m"
        ? Promise.resolve(11)
        : Promise.reject(new FailureError({ kind: "unavailable", message: "Loading.", status: 503 })),
  });
  return scripted;
}

describe.each(transports)("the Messages API through $name", ({ open }) => {
  let api: Api;
  beforeAll(async () => {
    const other = new ScriptedEngine(() => answer(["Hi"]), "silent");
    const served = serving(engine(), { apiKey: [key] });
    api = await open({
      ...served,
      models: [
        ...(served.models ?? []).map((model) =>
          typeof model === "object" ? { ...model, aliases: ["claude-*"] } : model,
        ),
        { kind: "engine", engine: other },
      ],
    });
  });
  afterAll(() => api.close());

  const ask = async (
    path: string,
    body: Json,
    headers: Readonly<Record<string, string>> = { "x-api-key": key, "anthropic-version": "2023-06-01" },
  ) => {
    const init = json({ model: "m", messages: [{ role: "user", content: "Hi" }], ...body });
    return api.fetch(path, { ...init, headers: { ...(init.headers as Record<string, string>), ...headers } });
  };
  const message = (body: Json = {}, headers?: Readonly<Record<string, string>>) =>
    ask("/v1/messages?beta=true", { max_tokens: 5, ...body }, headers);

  test("a message, whole and streamed", async () => {
    const whole = await message();
    expect(await whole.json()).toMatchObject({
      model: "m",
      id: expect.stringMatching(/^msg_011C.{20}$/) as string,
      content: [{ type: "text", text: "Hello" }],
      stop_reason: "end_turn",
      usage: { input_tokens: 3, output_tokens: 2 },
    });
    // Every API had ids in OpenAI's form.
    expect(whole.headers.get("request-id")).toMatch(/^req_011[1-9A-HJ-NP-Za-km-z]{21}$/);
    expect(whole.headers.get("x-request-id")).toBe(whole.headers.get("request-id"));
    const streamed = await message({ stream: true });
    expect(streamed.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const text = await streamed.text();
    expect(text.match(/^event: .*$/gm)).toEqual(
      [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
      ].map((name) => `event: ${name}`),
    );
  });

  test("profile exact pads its events, and wants the version's header", async () => {
    const wire = { "x-api-key": key, "x-truewire-wire": "exact" };
    const streams = await Promise.all(
      [1, 2, 3].map(async () =>
        (await message({ stream: true }, { ...wire, "anthropic-version": "2023-06-01" })).text(),
      ),
    );
    expect(streams.join("")).toMatch(/ \}$/m);
    const refused = await message({}, wire);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      type: "error",
      error: { type: "invalid_request_error", message: "anthropic-version: header is required" },
    });
    expect((await message({}, { "x-api-key": key })).status).toBe(200);
  });

  test("the key comes in x-api-key or as a Bearer token", async () => {
    expect((await message({}, { authorization: `Bearer ${key}` })).status).toBe(200);
    for (const [headers, words] of [
      [{ "x-api-key": "wrong" }, "invalid x-api-key"],
      [{}, "x-api-key header is required"],
    ] as const) {
      const response = await message({}, headers);
      expect(response.status).toBe(401);
      expect(response.headers.get("x-should-retry")).toBe("false");
      expect(await response.json()).toEqual({
        type: "error",
        error: { type: "authentication_error", message: words },
        request_id: response.headers.get("request-id"),
      });
    }
  });

  test.each([
    [{ model: "nope" }, 404, "not_found_error", "model: nope"],
    [{ model: "overflow" }, 400, "invalid_request_error", "prompt is too long: 12345 tokens > 8192 maximum"],
    [{ model: "full" }, 529, "overloaded_error", "Overloaded"],
    [{ max_tokens: -2 }, 400, "invalid_request_error", "max_tokens: must be greater than or equal to 0"],
    [{ messages: [] }, 400, "invalid_request_error", "messages: at least one message is required"],
  ])("%j is refused in Anthropic's words, streamed or not", async (body, status, type, words) => {
    for (const stream of [false, true]) {
      const response = await message({ ...body, stream });
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ type: "error", error: { type, message: words } });
    }
    if (status === 529) expect((await message(body)).headers.get("retry-after")).toBe("2");
  });

  test("a body that is no JSON", async () => {
    const init = { method: "POST", headers: { "x-api-key": key, "content-type": "application/json" }, body: "{" };
    const response = await api.fetch("/v1/messages", init);
    expect(await response.json()).toMatchObject({
      type: "error",
      error: {
        type: "invalid_request_error",
        message:
          "The request body is not valid JSON: line 1, column 2: expected a name in double quotes or }, found the end of the body.",
      },
    });
  });

  test("a name that an alias with * covers", async () => {
    const response = await message({ model: "claude-opus-5-5" });
    expect(await response.json()).toMatchObject({ model: "claude-opus-5-5", content: [{ text: "Hello" }] });
    const list = (await (await api.fetch("/v1/models", { headers: { "x-api-key": key } })).json()) as {
      data: { id: string }[];
    };
    expect(list.data.map(({ id }) => id)).toEqual(["m", "overflow", "full", "silent"]);
  });

  test("tokens are counted, to the byte; who cannot count estimates", async () => {
    const counted = await ask("/v1/messages/count_tokens?beta=true", {});
    expect([counted.status, await counted.text()]).toEqual([200, '{"input_tokens":11}']);
    const unknown = await ask("/v1/messages/count_tokens", { model: "nope" });
    expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: { message: "model: nope" } }]);
    const failing = await ask("/v1/messages/count_tokens", { model: "full" });
    expect([failing.status, await failing.json()]).toMatchObject([529, { error: { type: "overloaded_error" } }]);
    const silent = await ask("/v1/messages/count_tokens", { model: "silent" });
    expect([silent.status, await silent.json()]).toEqual([200, { input_tokens: 3 }]);
    expect(silent.headers.get("x-truewire-estimate")).toBe("tokens");
    expect(counted.headers.get("x-truewire-estimate")).toBeNull();
    expect((await ask("/v1/messages/count_tokens", { messages: 5 })).status).toBe(400);
  });

  test("models in the form of the client's API", async () => {
    const list = await api.fetch("/v1/models", { headers: { "x-api-key": key } });
    expect(await list.json()).toMatchObject({
      data: [{ type: "model", id: "m", display_name: "m", created_at: "2023-11-14T22:13:20Z" }, {}, {}, {}],
      has_more: false,
      first_id: "m",
      last_id: "silent",
    });
    for (const [query, count] of [
      ["lifecycle[]=active", 4],
      ["lifecycle[]=retired&lifecycle%5B%5D=active", 4],
      ["lifecycle[]=deprecated&lifecycle[]=retired", 0],
    ] as const) {
      const filtered = await api.fetch(`/v1/models?${query}`, { headers: { "x-api-key": key } });
      expect(((await filtered.json()) as { data: unknown[] }).data, query).toHaveLength(count);
    }
    // An unknown value was answered with an empty list.
    const wrong = await api.fetch("/v1/models?lifecycle[]=active&lifecycle[]=x", { headers: { "x-api-key": key } });
    expect([wrong.status, await wrong.json()]).toMatchObject([
      400,
      { error: { message: "lifecycle.1: Input should be 'active', 'deprecated' or 'retired'" } },
    ]);
    const headers = { authorization: `Bearer ${key}` };
    expect(await (await api.fetch("/v1/models", { headers })).json()).toMatchObject({ object: "list" });
    const one = await api.fetch("/v1/models/m", { headers: { ...headers, "anthropic-version": "2023-06-01" } });
    expect(await one.json()).toMatchObject({
      type: "model",
      id: "m",
      capabilities: { server_tools: { supported: false }, thinking: { types: { between_tools: { supported: true } } } },
      lifecycle: "active",
      deprecated_at: null,
      retires_at: null,
      line: null,
    });
    const none = await api.fetch("/v1/models/nope", { headers: { "x-api-key": key } });
    expect([none.status, await none.json()]).toMatchObject([
      404,
      { type: "error", error: { type: "not_found_error", message: "model: nope" } },
    ]);
  });

  test.each(["/", "/api/hello"])("HEAD and GET %s need no key", async (path) => {
    for (const method of ["HEAD", "GET"]) {
      const response = await api.fetch(path, { method });
      expect(response.status).toBe(200);
    }
  });
});
