import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { chat, json, serving, transports } from "../support/transports.ts";
import type { Api } from "../support/transports.ts";

describe.each(transports)("paths through $name", ({ open }) => {
  let api: Api;
  beforeAll(async () => {
    api = await open(serving(new ScriptedEngine(() => answer(["Hi"]), "scripted", "org/second:7b")));
  });
  afterAll(() => api.close());

  test.each([
    "/v1/chat/completions",
    "/chat/completions",
    "//v1//chat/completions",
    "/v1/chat/completions/",
    "/v1/chat/completions?x=1",
  ])("POST %s answers a chat", async (path) => {
    const response = await api.fetch(path, chat("Hello"));
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      object: "chat.completion",
      model: "scripted",
      choices: [{ message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
    });
  });

  test.each(["/v1/completions", "/completions"])("POST %s answers a completion", async (path) => {
    const response = await api.fetch(path, json({ model: "scripted", prompt: "Hello" }));
    expect(await response.json()).toMatchObject({ object: "text_completion", choices: [{ text: "Hi" }] });
  });

  test("GET /v1/models with client_version has the models in Codex's form, too, and an ETag", async () => {
    const plain = (await (await api.fetch("/v1/models")).json()) as object;
    const response = await api.fetch("/v1/models?client_version=0.169.0");
    const etag = response.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[0-9a-f]+"$/);
    const slugs = ["scripted", "org/second:7b"].map((slug) => ({ slug }));
    expect(await response.json()).toMatchObject({ ...plain, models: slugs });
    expect(plain).not.toHaveProperty("models");
    const again = await api.fetch("/v1/models?client_version=0.169.0", { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  });

  test("GET /v1/models lists what there is, and each model is found by its id, encoded or not", async () => {
    const list = (await (await api.fetch("/v1/models")).json()) as { data: { id: string }[] };
    expect(list).toMatchObject({ object: "list" });
    expect(list.data.map(({ id }) => id)).toEqual(["scripted", "org/second:7b"]);
    for (const name of ["org/second:7b", encodeURIComponent("org/second:7b")]) {
      const model = await api.fetch(`/models/${name}`);
      expect(await model.json()).toMatchObject({ id: "org/second:7b", object: "model", owned_by: "test" });
    }
  });

  test("an unknown model is a 404; one that a request names lists what there is", async () => {
    const listed = await api.fetch("/v1/models/nope");
    expect(listed.status).toBe(404);
    expect(await listed.json()).toMatchObject({ error: { code: "model_not_found", param: "model" } });
    const response = await api.fetch("/v1/chat/completions", chat("Hello", { model: "nope" }));
    expect(response.status).toBe(404);
    const { error } = (await response.json()) as { error: { message: string; code: string } };
    expect(error.code).toBe("model_not_found");
    expect(error.message).toContain("`nope`");
    expect(error.message).toContain("`scripted`");
    expect(error.message).toContain("`org/second:7b`");
  });

  test("a request without a model is told that it must give one", async () => {
    const response = await api.fetch("/v1/chat/completions", json({ messages: [{ role: "user", content: "x" }] }));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { message: "you must provide a model parameter" } });
  });

  // The 25 endpoints of the server were listed for a path with one letter too few.
  test.each([
    ["POST", "/v1/chat/completion", "POST /v1/chat/completions"],
    ["POST", "/v1/v1/chat/completions", "POST /v1/chat/completions"],
    ["GET", "/v1/model", "GET /v1/models"],
    ["POST", "/api/chta", "POST /api/chat"],
    ["GET", "/helth", "GET /health"],
  ])("%s %s is a 404 that names what was meant", async (method, path, meant) => {
    const answer = await (await api.fetch(path, { method })).text();
    expect(answer).toContain(`There is no ${method} ${path} here. Did you mean ${meant}?`);
    expect(answer.length).toBeLessThan(300);
  });

  test("an unknown path is a 404 that names method and path, whatever its method", async () => {
    for (const method of ["GET", "POST", "DELETE", "OPTIONS"]) {
      const headers = { "x-truewire-wire": "exact" };
      const response = await api.fetch("/v1/engines", { method, headers });
      expect(response.status).toBe(404);
      const own = (await (await api.fetch("/v1/engines", { method })).json()) as { error: { message: string } };
      // OpenAI's words do not say what there is.
      expect(own.error.message).toMatch(
        `There is no ${method} /v1/engines here. This server has: POST /v1/chat/completions,`,
      );
      expect(own.error.message).toMatch(/GET \/v1\/models, GET \/v1\/models\/\{id\}, POST \/tokenize, .*GET \/health/);
      expect(await response.json()).toEqual({
        error: {
          message: `Invalid URL (${method} /v1/engines)`,
          type: "invalid_request_error",
          param: null,
          code: null,
        },
      });
    }
  });

  /** They got OpenAI's error object, from which Anthropic's SDKs read no type, and Ollama's clients an object where they expect a text. */
  test.each<[string, string, Record<string, string>, "anthropic" | "openai" | "ollama"]>([
    ["POST", "/v1/messages/others", {}, "anthropic"],
    ["GET", "/messages/others/b/results", {}, "anthropic"],
    ["POST", "/v1/skills", { "anthropic-version": "2023-06-01" }, "anthropic"],
    ["GET", "/v1/organizations/me", { "x-api-key": "k" }, "anthropic"],
    ["POST", "/v1/images/edits", {}, "openai"],
    ["POST", "/v1/responses/r/x", { "x-api-key": "k" }, "openai"],
    ["GET", "/v1/messages-of-others", {}, "openai"],
    ["GET", "/apis", {}, "openai"],
    ["GET", "/api/tag", {}, "ollama"],
    ["POST", "/api/chats", { "anthropic-version": "2023-06-01" }, "ollama"],
    ["GET", "/api", {}, "ollama"],
  ])("an unknown path, %s %s with %j, is a 404 in the form of its API: %s", async (method, path, headers, form) => {
    const response = await api.fetch(path, { method, headers });
    expect(response.status).toBe(404);
    const message = expect.stringContaining(`There is no ${method} ${path} here.`) as unknown;
    const expected = {
      anthropic: {
        type: "error",
        error: { type: "not_found_error", message },
        request_id: response.headers.get("request-id"),
      },
      openai: { error: { message, type: "invalid_request_error", param: null, code: null } },
      ollama: { error: message },
    };
    expect(await response.json()).toEqual(expected[form]);
  });

  test("names that every object has are no paths", async () => {
    for (const path of ["/v1/constructor", "/constructor/x", "/v1/__proto__", "/toString"]) {
      expect((await api.fetch(path)).status).toBe(404);
    }
  });

  test("a wrong method is a 405 that says which are right", async () => {
    const response = await api.fetch("/v1/chat/completions");
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe("POST, OPTIONS");
    expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error" } });
    expect((await api.fetch("/v1/models", { method: "DELETE" })).headers.get("allow")).toBe("GET, HEAD, OPTIONS");
  });

  test("HEAD is answered as GET, without a body", async () => {
    const response = await api.fetch("/v1/models", { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.text()).toBe("");
  });

  test("GET /health tells the engines' states, slots and queues", async () => {
    const response = await api.fetch("/health");
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      status: "ok",
      slots: { busy: 0, total: 8 },
      queued: 0,
      engines: [{ name: "scripted", models: ["scripted", "org/second:7b"], state: "ready" }],
    });
  });

  // A handler leaves pages to the server that it is part of.
  test("GET / is the page of a server, and a text about the API of a handler", async () => {
    const response = await api.fetch("/", { headers: { accept: "text/html" } });
    const text = await response.text();
    const page = await api.fetch("/page/page.js");
    if (response.headers.get("content-type") === "text/html; charset=utf-8") {
      expect(text).toContain("page/page.js");
      expect(page.status).toBe(200);
      return;
    }
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(text).toContain("/v1");
    expect(text).toContain("scripted");
    expect(page.status).toBe(404);
  });
});

describe.each(transports)("states through $name", ({ open }) => {
  test("/health is 503 when no engine is ready", async () => {
    const engine = new ScriptedEngine(() => answer(["Hi"]));
    const api = await open(serving(engine));
    await api.fetch("/v1/models");
    engine.state = "restarting";
    const response = await api.fetch("/health");
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await response.json()).toMatchObject({ status: "loading", engines: [{ state: "restarting" }] });
    engine.state = "failed";
    expect(await (await api.fetch("/health")).json()).toMatchObject({ status: "unavailable" });
    await api.close();
  });
});
