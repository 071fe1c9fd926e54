import { Ollama, type ChatResponse } from "ollama";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { QuestionHandlers } from "../../src/wire/core/engine.ts";
import { hashOf } from "../../src/serve/server/keys/key-ring.ts";
import { ollamaChatResponse, ollamaGenerateResponse } from "../../src/wire/apis/ollama/schema.ts";
import { said, serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";
import { answer, done, failed, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { json, serving, transports } from "../support/transports.ts";
import { dailyPart } from "../support/runs.ts";

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Weather",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

/** Ollama's own client for JavaScript against the programmed model. */
describe.each(dailyPart(["lean", "exact"], 2))("the ollama package, wire %s", (wire) => {
  let server: FixtureServer;
  let client: Ollama;
  const model = "programmed";
  beforeAll(async () => {
    server = await serveFixture("--wire", wire);
    client = new Ollama({ host: server.url });
  });
  afterAll(() => server.close());

  const ask = (content: string): { model: string; messages: { role: string; content: string }[] } => ({
    model,
    messages: [{ role: "user", content }],
  });

  async function linesOf(stream: AsyncIterable<ChatResponse>): Promise<ChatResponse[]> {
    const lines: ChatResponse[] = [];
    for await (const line of stream) lines.push(line);
    return lines;
  }

  test("chat, whole and streamed: the same text, and counts in the last line only", async () => {
    const whole = await client.chat(ask("#unicode"));
    expect(ollamaChatResponse.strict().safeParse(JSON.parse(JSON.stringify(whole))).error).toBeUndefined();
    expect(whole).toMatchObject({
      model,
      done: true,
      done_reason: "stop",
      message: { role: "assistant", content: said.unicode },
    });
    expect(whole.eval_count).toBeGreaterThan(5);
    expect(whole.prompt_eval_count).toBeGreaterThan(1);
    for (const name of ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"] as const)
      expect(Number.isSafeInteger(whole[name]) && whole[name] > 0, name).toBe(true);
    const lines = await linesOf(await client.chat({ ...ask("#unicode"), stream: true }));
    expect(lines.map(({ message }) => message.content).join("")).toBe(said.unicode);
    expect(lines.filter((line) => line.done)).toEqual([lines.at(-1)]);
    expect(lines.filter((line) => "eval_count" in line)).toEqual([lines.at(-1)]);
  });

  test("a name with and without the tag latest is the same model", async () => {
    const { message } = await client.chat({ ...ask("#plain"), model: "programmed:latest" });
    expect(message.content).toBe(said.plain);
    await expect(client.chat({ ...ask("#plain"), model: "programmed:8b" })).rejects.toMatchObject({
      status_code: 404,
      error: expect.stringMatching(/^model 'programmed:8b' not found/) as unknown,
    });
  });

  test("tools: the arguments are an object, and the result is answered", async () => {
    const question = ask("#call");
    const lines = await linesOf(await client.chat({ ...question, tools: [weather], stream: true }));
    const calls = lines.flatMap(({ message }) => message.tool_calls ?? []);
    expect(calls).toMatchObject([{ function: { name: "get_weather", arguments: { city: "Paris" } } }]);
    expect(lines.at(-1)).toMatchObject({ done: true, done_reason: "stop" });
    const { message } = await client.chat({
      model,
      tools: [weather],
      messages: [
        ...question.messages,
        { role: "assistant", content: "", tool_calls: calls },
        { role: "tool", tool_name: "get_weather", content: "sunny, 21 degrees" },
      ],
    });
    expect(message.content).toBe(said.toolAnswer);
  });

  test("think: reasoning is a member of its own, streamed and whole", async () => {
    const { message } = await client.chat({ ...ask("#thought"), think: true });
    expect(message).toMatchObject({
      content: "My answer is forty-two.",
      thinking: "The user wants a number; forty-two will do.",
    });
    const lines = await linesOf(await client.chat({ ...ask("#thought"), think: "high", stream: true }));
    expect(lines.map(({ message: { thinking = "" } }) => thinking).join("")).toBe(message.thinking);
    expect(lines.findIndex(({ message: { content } }) => content !== "")).toBeGreaterThan(
      lines.findLastIndex(({ message: { thinking } }) => thinking !== undefined),
    );
  });

  test("format: a schema constrains the answer", async () => {
    const format = { type: "object", properties: { city: { enum: ["Paris"] } }, required: ["city"] };
    const { message } = await client.chat({ ...ask("#json"), format, options: { temperature: 0 } });
    expect(JSON.parse(message.content)).toEqual({ city: "Paris" });
  });

  test("options: stop and num_predict", async () => {
    const stopped = await client.chat({ ...ask("#plain"), options: { stop: ["jumps"] } });
    expect(stopped).toMatchObject({ done_reason: "stop", message: { content: "The quick brown fox " } });
    const cut = await client.chat({ ...ask("#plain"), options: { num_predict: 3 } });
    expect(cut).toMatchObject({ done_reason: "length", eval_count: 3 });
  });

  test("generate: text, raw, suffix, and a context that continues the conversation", async () => {
    const first = await client.generate({ model, prompt: "#plain" });
    expect(ollamaGenerateResponse.strict().safeParse(JSON.parse(JSON.stringify(first))).error).toBeUndefined();
    expect(first).toMatchObject({ response: said.plain, done: true, done_reason: "stop" });
    const next = await client.generate({ model, prompt: "#unicode", context: first.context });
    expect(next.response).toBe(said.unicode);
    expect(next.prompt_eval_count).toBeGreaterThan(first.prompt_eval_count);
    const raw = await client.generate({ model, prompt: "<|script:plain|>", raw: true });
    expect(raw).toMatchObject({ response: said.plain });
    expect(raw.context).toBeUndefined();
    const middle = await client.generate({
      model,
      prompt: "def add(left, right):\n    ",
      suffix: "\n\nprint(add(1, 2))",
    });
    expect(middle.response).toBe("return left + right;");
    let text = "";
    for await (const line of await client.generate({ model, prompt: "#plain", stream: true })) text += line.response;
    expect(text).toBe(said.plain);
  });

  test("unknown paths and methods: in profile exact as Ollama's router words them, which is not JSON", async () => {
    const [path, method] = [await fetch(`${server.url}/api/nope`), await fetch(`${server.url}/api/chat`)];
    expect([path.status, method.status]).toEqual([404, 405]);
    const texts = [await path.text(), await method.text()];
    if (wire === "exact") expect(texts).toEqual(["404 page not found", "405 method not allowed"]);
    else expect(texts.map((text) => Object.keys(JSON.parse(text) as object))).toEqual([["error"], ["error"]]);
  });

  test("log probabilities", async () => {
    const whole = await client.chat({ ...ask("#odds"), logprobs: true, top_logprobs: 2 });
    const [first] = whole.logprobs ?? [];
    expect(first?.top_logprobs?.map(({ token }) => token)).toEqual(["red", "green"]);
    expect(Math.exp(first?.top_logprobs?.[0]?.logprob ?? 0)).toBeCloseTo(0.7, 2);
    const plain = await client.chat({ ...ask("#odds"), logprobs: true });
    expect(plain.logprobs?.[0]?.top_logprobs).toBeUndefined();
  });

  test("list, show, version", async () => {
    const { models } = await client.list();
    expect(models).toMatchObject([
      { name: "programmed:latest", model: "programmed:latest", details: { format: "gguf" } },
    ]);
    expect(models[0]?.digest).toMatch(/^[0-9a-f]{64}$/);
    expect(models[0]?.size).toBeGreaterThan(1000);
    const shown = await client.show({ model });
    expect(shown.capabilities).toContain("completion");
    expect(shown.template).toContain("messages");
    const info = shown.model_info as unknown as Record<string, unknown>;
    expect(info[`${String(info["general.architecture"])}.context_length`]).toBe(4096);
    await expect(client.show({ model: "nope" })).rejects.toMatchObject({
      status_code: 404,
      error: "model 'nope:latest' not found",
    });
    expect(await client.version()).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+$/) as unknown });
  });

  test("keep_alive: empty messages load the model, 0 unloads it, and ps shows both", async () => {
    const loaded = await client.chat({ model, messages: [], keep_alive: "10m" });
    expect(loaded).toMatchObject({ done: true, done_reason: "load", message: { role: "assistant", content: "" } });
    const [shown] = (await client.ps()).models;
    expect(shown).toMatchObject({ name: "programmed:latest", context_length: 4096 });
    const left = Date.parse(String(shown?.expires_at)) - Date.now();
    expect(left > 0 && left <= 600_000).toBe(true);
    const unloaded = await client.generate({ model, prompt: "", keep_alive: 0 });
    expect(unloaded).toMatchObject({ done: true, done_reason: "unload", response: "" });
    await until(async () => (await client.ps()).models.length === 0, "the model is unloaded");
    // A request that only unloads must not load it, nor have an effect on the next one.
    expect(await client.generate({ model, prompt: "", keep_alive: 0 })).toMatchObject({ done_reason: "unload" });
    expect((await client.ps()).models).toEqual([]);
    await client.chat(ask("#plain"));
    expect((await client.ps()).models).toHaveLength(1);
  });

  test("abort: the stream ends, and its slot is free", async () => {
    const stream = await client.chat({ ...ask("#endless"), stream: true });
    const read = async (): Promise<void> => {
      for await (const line of stream) if (line.message.content !== "") client.abort();
    };
    await expect(read()).rejects.toMatchObject({ name: "AbortError" });
    await until(async () => {
      const health = (await (await fetch(`${server.url}/health`)).json()) as { slots: { busy: number } };
      return health.slots.busy === 0;
    }, "the slot is free");
  });

  test("what cannot be done is refused in words", async () => {
    await expect(client.delete({ model })).rejects.toThrow("this server deletes no models");
    await expect(client.copy({ source: model, destination: "x" })).rejects.toThrow("this server copies no models");
    await expect(client.create({ model: "x", from: model })).rejects.toThrow("this server creates no models");
    await expect(client.push({ model })).rejects.toThrow("this server publishes no models");
    await expect(client.pull({ model: "llama3.2" })).rejects.toThrow("pull model manifest: file does not exist");
    expect(await client.pull({ model })).toEqual({ status: "success" });
    await expect(client.embed({ model, input: "x" })).rejects.toThrow("does not make embeddings");
  });

  test("a prompt that is too long loses its oldest messages, unless truncate is false", async () => {
    const messages = [
      { role: "user", content: "word ".repeat(9000) },
      { role: "assistant", content: "Yes." },
      { role: "user", content: "#plain" },
    ];
    expect((await client.chat({ model, messages })).message.content).toBe(said.plain);
    const refused = fetch(`${server.url}/api/chat`, json({ model, messages, truncate: false }));
    expect((await refused).status).toBe(400);
  });
});

/** Embeds a text as its length and its position. */
class EmbeddingEngine extends ScriptedEngine {
  override readonly handlers: Partial<QuestionHandlers> = {
    embed: async ({ inputs }) => ({ vectors: inputs.map((input, at) => [input.length, at]), promptTokens: 7 }),
  };
}

test("embed and embeddings", async () => {
  const server = await createServer({
    port: 0,
    logLevel: "silent",
    ...serving(new EmbeddingEngine(() => answer(["Hi"]))),
  });
  const client = new Ollama({ host: server.url });
  const many = await client.embed({ model: "scripted", input: ["abc", "abcd"] });
  expect(many).toMatchObject({
    model: "scripted",
    embeddings: [
      [1, 0],
      [4 / Math.hypot(4, 1), expect.any(Number)],
    ],
  });
  expect(many.prompt_eval_count).toBe(7);
  expect((await client.embed({ model: "scripted", input: "abc", dimensions: 1 })).embeddings).toEqual([[1]]);
  expect((await client.embed({ model: "scripted", input: [] })).embeddings).toEqual([]);
  expect(await client.embeddings({ model: "scripted:latest", prompt: "abcd" })).toEqual({ embedding: [4, 0] });
  await expect(client.embed({ model: "nope", input: "x" })).rejects.toThrow(
    'model "nope" not found, try pulling it first',
  );
  await server.close();
});

test("keys: a 401 is an error of Ollama's form, a key sees only its models, and its requests change no model", async () => {
  const models = [new ScriptedEngine(() => answer(["A"]), "a"), new ScriptedEngine(() => answer(["B"]), "b")];
  const server = await createServer({
    port: 0,
    logLevel: "silent",
    keys: [{ hash: `sha256:${await hashOf("key-0123456789")}`, name: "k", models: ["a"] }],
    models: models.map((engine) => ({ kind: "engine", engine })),
  });
  const refused = await fetch(`${server.url}/api/tags`);
  expect(refused.status).toBe(401);
  expect(await refused.json()).toEqual({ error: expect.stringContaining("API key") as unknown });
  const client = new Ollama({ host: server.url, headers: { Authorization: "Bearer key-0123456789" } });
  expect((await client.list()).models.map(({ name }) => name)).toEqual(["a:latest"]);
  const messages = [{ role: "user", content: "Hi" }];
  expect((await client.chat({ model: "a:latest", messages })).message.content).toBe("A");
  await expect(client.chat({ model: "b", messages })).rejects.toMatchObject({ status_code: 404 });
  const kept = await fetch(`${server.url}/api/chat`, {
    ...json({ model: "a", keep_alive: 0, messages: [{ role: "robot", content: "Hi" }] }),
    headers: { authorization: "Bearer key-0123456789" },
  });
  // The warning about the model once replaced those about the request.
  expect(kept.headers.get("x-truewire-warning")).toMatch(/robot.*; how long models stay loaded/);
  await expect(client.pull({ model: "a" })).rejects.toMatchObject({ status_code: 403 });
  await server.close();
});

describe.each(transports)("Ollama's API through $name", ({ open }) => {
  test("the headers and the bytes of a stream; any content type will do, as for curl -d", async () => {
    const api = await open(serving(new ScriptedEngine(() => answer(["Hel", "lo <"]))));
    const response = await api.fetch("/api/chat", {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: JSON.stringify({ model: "scripted", messages: [{ role: "user", content: "Hi" }] }),
    });
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    const lines = (await response.text()).replace(/"created_at":"[^"]*"/g, '"created_at":""').split("\n");
    const head = '{"model":"scripted","created_at":"","message":{"role":"assistant","content":';
    expect(lines.slice(0, 2)).toEqual([`${head}"Hel"},"done":false}`, `${head}"lo \\u003c"},"done":false}`]);
    expect(lines[2]).toMatch(
      /^\{.*"content":""\},"done":true,"done_reason":"stop","total_duration":\d+,"prompt_eval_count":3,/,
    );
    expect(lines[3]).toBe("");
    const whole = await api.fetch("/api/generate", json({ model: "scripted", prompt: "Hi", stream: false }));
    expect(whole.headers.get("content-type")).toBe("application/json; charset=utf-8");
    await api.close();
  });

  test("errors before the stream have a status, errors in it are its last line", async () => {
    const scripts = [
      [[failed("rejected", { status: 429, message: "Full." })]],
      [
        [{ type: "start", choice: 0 } as const, { type: "text-delta", choice: 0, text: "Hi" } as const],
        [failed("engine-error")],
      ],
      [[{ type: "start", choice: 0 } as const, { type: "finish", choice: 0, reason: "stop" } as const, done]],
    ];
    const api = await open(serving(new ScriptedEngine(() => scripts.shift() ?? [])));
    const ask = (): Promise<Response> =>
      api.fetch("/api/chat", json({ model: "scripted", messages: [{ role: "user", content: "Hi" }] }));
    const early = await ask();
    expect([early.status, await early.json()]).toEqual([429, { error: "Full." }]);
    const late = (await (await ask()).text()).trimEnd().split("\n");
    expect(JSON.parse(late.at(-1) ?? "")).toEqual({ error: "It broke." });
    const empty = (await (await ask()).text()).trimEnd().split("\n");
    expect(empty).toHaveLength(1);
    await api.close();
  });

  test.each([
    [
      "{",
      "The request body is not valid JSON: line 1, column 2: expected a name in double quotes or }, found the end of the body.",
    ],
    ["[]", 'Expected a JSON object such as {"model": "NAME"}.'],
  ])("the body %j is refused: %s", async (body, error) => {
    const api = await open(serving(new ScriptedEngine(() => answer(["Hi"]))));
    const response = await api.fetch("/api/chat", { method: "POST", body });
    // undici over HTTP/2 sends no empty body.
    if (body !== "" || response.status === 400)
      expect([response.status, await response.json()]).toEqual([400, { error }]);
    await api.close();
  });

  test("the root and the lists answer HEAD", async () => {
    const api = await open(serving(new ScriptedEngine(() => answer(["Hi"]))));
    expect(await (await api.fetch("/")).text()).toBe("Ollama is running");
    for (const path of ["/", "/api/tags", "/api/version"])
      expect((await api.fetch(path, { method: "HEAD" })).status).toBe(200);
    expect((await api.fetch("/api/blobs/sha256:00", { method: "HEAD" })).status).toBe(404);
    await api.close();
  });
});

// undici never ends a request over HTTP/2 whose body is empty.
test.each(transports.filter(({ name }) => !name.includes("http2")))(
  "an empty body through $name is refused",
  async ({ open }) => {
    const api = await open(serving(new ScriptedEngine(() => answer(["Hi"]))));
    const response = await api.fetch("/api/generate", { method: "POST", body: "" });
    expect([response.status, await response.json()]).toEqual([400, { error: "missing request body" }]);
    await api.close();
  },
);
