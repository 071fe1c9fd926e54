import { request } from "node:http";
import type { IncomingMessage } from "node:http";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { closeAfterTest } from "../support/close-after-test.ts";
import { startOllama } from "../doubles/ollama-api.ts";
import type { OllamaDouble, OllamaDoubleOptions, SeenPrompt } from "../doubles/ollama-api.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { startGateway } from "./gateway.ts";
import { until } from "../support/scripted-engine.ts";

/*
 * Ollama's own API as a source, over a double that cuts, refuses and reloads as Ollama does. Over Ollama's OpenAI endpoint, a request cannot
 * set the context (`num_ctx`), and the beginning of a conversation was lost without a word (ollama/ollama#3839, #17427).
 */

type Json = Readonly<Record<string, unknown>>;
type Entry = Parameters<typeof startGateway>[1];

async function serve(
  options: OllamaDoubleOptions,
  entry: Entry = {},
  path = "",
): Promise<{ upstream: OllamaDouble; truewire: TruewireServer }> {
  const upstream = await startOllama(options);
  closeAfterTest(() => upstream.close());
  const truewire = await startGateway(`${upstream.url}${path}`, entry);
  closeAfterTest(() => truewire.close(0));
  return { upstream, truewire };
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly json: Json;
}

async function send(truewire: TruewireServer, path: string, body: Json): Promise<Answer> {
  const response = await fetch(`${truewire.url}/v1${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "m:latest", ...body }),
  });
  const text = await response.text();
  return { status: response.status, text, json: text.startsWith("{") ? (JSON.parse(text) as Json) : {} };
}

const chat = (truewire: TruewireServer, members: Json): Promise<Answer> => send(truewire, "/chat/completions", members);

const user = (content: unknown): Json => ({ role: "user", content });
const assistant = (content: string): Json => ({ role: "assistant", content });

/** The first choice's message of a chat answer. */
function messageOf({ json, text }: Answer): Json {
  const [choice] = (json["choices"] ?? []) as readonly Json[];
  if (!choice) throw new Error(`no choice in ${text}`);
  return choice["message"] as Json;
}

/** The number of characters of `turns` turns, each of some 300 tokens. */
function talk(turns: number): Json[] {
  return Array.from({ length: turns }, (_, turn) => [
    user(`Turn ${turn}: ${"a question of some length. ".repeat(20)}`),
    assistant(`Turn ${turn}: ${"an answer of some length. ".repeat(25)}`),
  ]).flat();
}

const contextOf = ({ body }: OllamaDouble["requests"][number]): unknown => (body["options"] as Json)["num_ctx"];

const knowsPassword = ({ prompt }: SeenPrompt): string =>
  prompt.includes("swordfish") ? "It is swordfish." : "I do not know a password.";

describe("a conversation that is longer than Ollama's default context", () => {
  const messages = [user("The password is swordfish."), assistant("OK."), ...talk(20), user("What is the password?")];

  test("loses its beginning over the OpenAI endpoint, and not over Ollama's own API", async () => {
    const before = await serve({ reply: knowsPassword }, { api: "chat" }, "/v1");
    expect(messageOf(await chat(before.truewire, { messages }))["content"]).toBe("I do not know a password.");
    const after = await serve({ reply: knowsPassword }, {}, "/v1");
    expect(messageOf(await chat(after.truewire, { messages }))["content"]).toBe("It is swordfish.");
    expect(after.upstream.requests.map(({ path }) => path)).toEqual(["/api/chat"]);
    expect(before.upstream.refusals).toEqual([]);
    expect(after.upstream.refusals).toEqual([]);
  });

  test("has the beginning over the APIs of all clients, streamed and whole", async () => {
    const { truewire } = await serve({ reply: knowsPassword });
    for (const stream of [true, false]) {
      for (const [path, body] of [
        ["/chat/completions", { messages }],
        ["/responses", { input: messages }],
        ["/messages", { messages, max_tokens: 100 }],
      ] as const) {
        const { status, text } = await send(truewire, path, { ...body, stream });
        expect([path, stream, status]).toEqual([path, stream, 200]);
        expect(text.replace(/[^]*?(?=sword)|"[^]*?"(delta|content|text)":"/g, "")).toContain("fish");
        expect(text).not.toContain("do not know");
      }
    }
  });

  test("is cut in the middle if one message is longer, over the OpenAI endpoint only", async () => {
    const long = [user(`The password is swordfish. ${"x".repeat(20_000)} What is the password?`)];
    const before = await serve({ reply: knowsPassword }, { api: "chat", onTruncation: "allow" }, "/v1");
    const cut = await chat(before.truewire, { messages: long });
    // Ollama's signature: (num_ctx - num_keep) / 2 tokens are left out of num_ctx.
    expect(cut.json["usage"]).toMatchObject({ prompt_tokens: 4096 / 2 + 2 });
    expect(messageOf(cut)["content"]).toBe("I do not know a password.");
    const after = await serve({ reply: knowsPassword });
    expect(messageOf(await chat(after.truewire, { messages: long }))["content"]).toBe("It is swordfish.");
  });
});

describe("the context that a request asks for", () => {
  test("grows in steps, so that a long conversation reloads the model a few times only", async () => {
    const { upstream, truewire } = await serve({ reply: () => "Yes." });
    for (let turns = 0; turns <= 120; turns += 2) await chat(truewire, { messages: [...talk(turns), user("Go on.")] });
    expect(upstream.refusals).toEqual([]);
    expect(upstream.loads.map(({ numCtx }) => numCtx)).toEqual([8192, 16_384, 32_768, 65_536]);
    // Back to a short one: the model is not loaded again.
    await chat(truewire, { messages: [user("Hi")] });
    expect(upstream.loads).toHaveLength(4);
  });

  test("is what another program has loaded the model with, if that is larger", async () => {
    const { upstream, truewire } = await serve({ reply: () => "Yes." });
    await fetch(`${upstream.url}/api/chat`, {
      method: "POST",
      body: JSON.stringify({ model: "m", shift: false, options: { num_ctx: 20_000 } }),
    });
    await chat(truewire, { messages: [user("Hi")] });
    expect(upstream.loads.map(({ numCtx }) => numCtx)).toEqual([20_000]);
  });

  test("is what the model's own parameters set, and never more than the model was trained for", async () => {
    const models = {
      "own:latest": { parameters: 'stop                           "<|end|>"\nnum_ctx                        12000' },
      "small:latest": { contextLength: 2048 },
    };
    const { upstream, truewire } = await serve({ models, reply: () => "Yes." });
    await chat(truewire, { model: "own:latest", messages: [user("Hi")] });
    await chat(truewire, { model: "small:latest", messages: [user("Hi")], max_tokens: 4000 });
    expect(upstream.requests.map(contextOf)).toEqual([12_000, 2048]);
  });

  test("and the defaults that its own parameters set are listed", async () => {
    const parameters =
      'stop      "<|end|>"\ntemperature      0.6\ntop_k      20\nnum_predict      -1\nnum_ctx      12000';
    const { truewire } = await serve({ models: { "m:latest": { parameters } }, reply: () => "Yes." });
    const { data } = (await (await fetch(`${truewire.url}/v1/models`)).json()) as { data: Json[] };
    expect(data[0]).toMatchObject({
      default_parameters: { temperature: 0.6, top_k: 20 },
      truewire: { default_origins: { temperature: "server", top_k: "server" } },
    });
  });

  test("has the bounds of the configuration, and keep_alive its value", async () => {
    const ollama = { minContext: 2048, maxContext: 10_000, keepAlive: "30m" };
    const { upstream, truewire } = await serve({ reply: () => "Yes." }, { ollama });
    await chat(truewire, { messages: [user("Hi")], max_tokens: 100 });
    await chat(truewire, { messages: [user("Hi")], max_tokens: 50_000 });
    expect(upstream.requests.map(contextOf)).toEqual([2048, 10_000]);
    expect(upstream.requests[0]?.body["keep_alive"]).toBe("30m");
    const models = (await (await fetch(`${truewire.url}/v1/models`)).json()) as { data: Json[] };
    expect(models.data).toMatchObject([{ id: "m:latest", context_length: 10_000 }]);
  });

  // The largest context of the model was listed, and agents planned with 131,072 tokens where Ollama had loaded 4,096.
  test("is listed as Ollama has loaded the model, and the largest one of a model that is not loaded", async () => {
    const models = {
      "m:latest": { capabilities: ["completion"], contextLength: 131_072 },
      "other:latest": { capabilities: ["completion"], contextLength: 32_768 },
    };
    const upstream = await startOllama({ models, reply: () => "Yes." });
    closeAfterTest(() => upstream.close());
    await fetch(`${upstream.url}/api/chat`, {
      method: "POST",
      body: JSON.stringify({ model: "m", messages: [user("Hi")], stream: false, options: { num_ctx: 4096 } }),
    });
    const truewire = await startGateway(upstream.url, {});
    closeAfterTest(() => truewire.close(0));
    const { data } = (await (await fetch(`${truewire.url}/v1/models`)).json()) as { data: Json[] };
    expect(data).toMatchObject([
      { id: "m:latest", context_length: 4096 },
      { id: "other:latest", context_length: 32_768 },
    ]);
  });

  test("is known for models that the configuration names", async () => {
    const { upstream, truewire } = await serve(
      { reply: knowsPassword },
      { api: "ollama", models: { gpt: "m" } },
      "/v1",
    );
    const messages = [user("The password is swordfish."), assistant("OK."), ...talk(20), user("What is it?")];
    expect(messageOf(await chat(truewire, { model: "gpt", messages }))["content"]).toBe("It is swordfish.");
    expect(upstream.requests[0]?.body["model"]).toBe("m");
    const long = await chat(truewire, { model: "gpt", messages: [user("x".repeat(2_000_000))] });
    expect(long.json).toMatchObject({ error: { code: "context_length_exceeded" } });
  });
});

describe("a prompt that is longer than the model's context", () => {
  test("is refused before it is sent, in the words of each API", async () => {
    const { upstream, truewire } = await serve({
      models: { "m:latest": { contextLength: 4096 } },
      reply: () => "Yes.",
    });
    const messages = [user("word ".repeat(10_000))];
    const answers = [
      await chat(truewire, { messages }),
      await chat(truewire, { messages, stream: true }),
      await send(truewire, "/responses", { input: messages }),
      await send(truewire, "/messages", { messages, max_tokens: 10 }),
      await send(truewire, "/completions", { prompt: "word ".repeat(10_000) }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400]);
    expect(answers[0]?.json["error"]).toMatchObject({
      message:
        "The prompt has about 12508 tokens, and the model's context is 4096 tokens: shorten the conversation, or use a model with a longer context.",
      code: "context_length_exceeded",
    });
    expect(answers[3]?.json["error"]).toMatchObject({
      message: expect.stringMatching(/^prompt is too long: /) as unknown,
    });
    expect(upstream.requests).toEqual([]);
  });

  test("is refused by Ollama if the estimate leaves it open, and nothing is cut", async () => {
    const { upstream, truewire } = await serve({
      models: { "m:latest": { contextLength: 4096 } },
      reply: () => "Yes.",
    });
    const { status, json } = await chat(truewire, { messages: [user("word ".repeat(4000))] });
    expect([status, json["error"]]).toMatchObject([400, { code: "context_length_exceeded" }]);
    expect(upstream.requests).toHaveLength(1);
  });

  test("is refused by estimate for an Ollama that would cut it", async () => {
    const old = { models: { "m:latest": { contextLength: 4096 } }, isOld: true, reply: () => "Yes." };
    const { upstream, truewire } = await serve(old);
    const { status, json } = await chat(truewire, { messages: [user("word ".repeat(4000))] });
    expect([status, json["error"]]).toMatchObject([400, { code: "context_length_exceeded" }]);
    expect(upstream.requests).toEqual([]);
  });
});

// The estimate of a text of digits or of base64 was too low, and the context with it.
test("a prompt with more tokens than estimated is sent once more with a larger context", async () => {
  const { upstream, truewire } = await serve({ reply: knowsPassword, charactersPerToken: 1 });
  const messages = [user(`The password is swordfish. ${"7".repeat(10_000)} What is the password?`)];
  for (const stream of [false, true]) {
    const { status, text } = await chat(truewire, { messages, stream });
    expect([status, text.includes("I do not know")]).toEqual([200, false]);
  }
  expect(upstream.loads.map(({ numCtx }) => numCtx)).toEqual([8192, 16_384]);
  expect(upstream.requests.map(contextOf)).toEqual([8192, 16_384, 16_384]);
});

describe("a context that does not fit into the memory", () => {
  // A long prompt would otherwise have set a context with which the model could not be loaded again.
  test("is replaced by a smaller one, and short prompts still work", async () => {
    const { upstream, truewire } = await serve({ reply: () => "Yes.", memory: 20_000 });
    const long = [user("word ".repeat(20_000))];
    const { status, json } = await chat(truewire, { messages: long });
    expect([status, json["error"]]).toMatchObject([400, { code: "context_length_exceeded" }]);
    expect(upstream.requests.map(contextOf)).toEqual([65_536, 32_768, 16_384]);
    expect((await chat(truewire, { messages: [user("Hi")] })).status).toBe(200);
    // One that fits is answered, with the largest context that the memory has.
    expect((await chat(truewire, { messages: [user("word ".repeat(10_000))] })).status).toBe(200);
    expect(upstream.loads.map(({ numCtx }) => numCtx)).toEqual([16_384]);
  });

  test("that is the smallest one is the server's error", async () => {
    const { truewire } = await serve({ reply: () => "Yes.", memory: 100 }, { retries: 0 });
    const { status, text } = await chat(truewire, { messages: [user("Hi")] });
    expect([status, text]).toEqual([500, expect.stringContaining("out-of-memory")]);
  });
});

describe("tools", () => {
  const tools = [
    {
      type: "function",
      function: { name: "read", parameters: { type: "object", properties: { path: { type: "string" } } } },
    },
  ];
  const ask = [user("Read a and b.")];
  const calls = [
    { name: "read", arguments: { path: "a", deep: { list: [1, null] } } },
    { name: "read", arguments: {} },
  ];

  test.each([false, true])("are called with objects, and calls keep their ids (an old Ollama: %s)", async (isOld) => {
    const { upstream, truewire } = await serve({
      isOld,
      reply: ({ prompt }) => (prompt.includes("<|tool|>") ? "Done." : { calls }),
    });
    const first = await chat(truewire, { messages: ask, tools });
    expect(first.json["choices"]).toMatchObject([{ finish_reason: "tool_calls" }]);
    const message = messageOf(first);
    const made = message["tool_calls"] as { id: string; function: { name: string; arguments: string } }[];
    expect(made.map(({ function: { arguments: text } }) => JSON.parse(text) as unknown)).toEqual(
      calls.map((call) => call.arguments),
    );
    expect(new Set(made.map(({ id }) => id)).size).toBe(2);
    const results = made.map(({ id }, at) => ({ role: "tool", tool_call_id: id, content: `result ${at}` }));
    const second = await chat(truewire, { messages: [...ask, message, ...results], tools });
    expect(messageOf(second)["content"]).toBe("Done.");
    const sent = upstream.requests[1]?.body["messages"] as Json[];
    expect(sent.slice(1)).toEqual([
      {
        role: "assistant",
        content: "",
        tool_calls: made.map(({ id }, at) => ({ id, function: calls[at] })),
      },
      ...made.map(({ id }, at) => ({ role: "tool", content: `result ${at}`, tool_name: "read", tool_call_id: id })),
    ]);
  });

  test("stream as calls of each API", async () => {
    const { truewire } = await serve({ reply: () => ({ thinking: "Hm.", text: "I read.", calls }) });
    const streamed = await send(truewire, "/messages", {
      messages: ask,
      max_tokens: 100,
      stream: true,
      tools: [{ name: "read", input_schema: { type: "object" } }],
    });
    expect(streamed.text).toContain('"stop_reason":"tool_use"');
    expect(streamed.text.match(/"type":"tool_use"/g)).toHaveLength(2);
    const response = await send(truewire, "/responses", {
      input: "Read.",
      tools: [{ type: "function", name: "read", parameters: { type: "object", properties: {} }, strict: false }],
    });
    expect(response.json["output"]).toMatchObject([
      { type: "reasoning" },
      { type: "message" },
      { type: "function_call", arguments: '{"path":"a","deep":{"list":[1,null]}}' },
      { type: "function_call", arguments: "{}" },
    ]);
  });

  test("have schemas that Ollama can read, and an earlier call may have damaged arguments", async () => {
    const { upstream, truewire } = await serve({ reply: () => "Yes." });
    const parameters = {
      type: "object",
      properties: {
        any: true,
        none: false,
        list: { type: ["array", "null"], items: { type: "string" }, description: { en: "a list" } },
        one: { anyOf: [{ type: "string" }, true], enum: ["a", null], required: "x" },
      },
      required: "any",
    };
    const call = { id: "call_1", type: "function", function: { name: "f", arguments: '{"path": "a' } };
    const messages = [
      ...ask,
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: "Invalid arguments." },
    ];
    const { status } = await chat(truewire, {
      messages,
      tools: [{ type: "function", function: { name: "f", parameters } }],
    });
    expect([status, upstream.refusals]).toEqual([200, []]);
    const { messages: sent, tools: declared } = upstream.requests[0]?.body ?? {};
    expect(sent).toMatchObject([
      {},
      { tool_calls: [{ function: { arguments: { INVALID_JSON: '{"path": "a' } } }] },
      {},
    ]);
    expect(declared).toMatchObject([
      {
        function: {
          parameters: {
            type: "object",
            properties: {
              any: {},
              none: {},
              list: { type: ["array", "null"] },
              one: { anyOf: [{ type: "string" }, {}] },
            },
          },
        },
      },
    ]);
    const metrics = await (await fetch(`${truewire.url}/metrics`)).text();
    const counted = [...metrics.matchAll(/truewire_repairs_total\{[^}]*repair="([^"]+)"/g)].map(([, name]) => name);
    expect(counted.toSorted()).toEqual(["earlier-arguments", "tool-schema-types"]);
  });
});

test("images are sent as base64, and an address that is not public is refused with its place", async () => {
  const models = { "m:latest": { capabilities: ["completion", "vision", "tools"] } };
  const { upstream, truewire } = await serve({ models, reply: () => "A dot." });
  const image = (url: string): Json => ({ type: "image_url", image_url: { url } });
  const seen = await chat(truewire, {
    messages: [user([{ type: "text", text: "Look:" }, image("data:image/png;base64,iVBORw0KGgo=")])],
  });
  expect(messageOf(seen)["content"]).toBe("A dot.");
  expect(upstream.requests[0]?.body["messages"]).toEqual([
    { role: "user", content: "Look:", images: ["iVBORw0KGgo="] },
  ]);
  const refused = await chat(truewire, { messages: [user("Hi"), user([image("http://127.0.0.1/a.png")])] });
  expect([refused.status, refused.json["error"]]).toMatchObject([
    400,
    { param: "messages[1].content[0]", message: expect.stringContaining("The image cannot be sent") as unknown },
  ]);
  expect(upstream.requests).toHaveLength(1);
});

test("files are sent as text, also to a server whose models are configured", async () => {
  const { upstream, truewire } = await serve(
    { models: { "m:latest": {} }, reply: () => "Read." },
    { api: "ollama", models: ["m:latest"] },
  );
  const file_data = `data:text/plain;base64,${btoa("A line of the file.")}`;
  const file = { type: "file", file: { filename: "a.txt", file_data } };
  const read = await chat(truewire, { messages: [user([file, { type: "text", text: "Sum it up." }])] });
  expect(read.text).toContain("Read.");
  expect(upstream.requests[0]?.body["messages"]).toMatchObject([
    { content: expect.stringContaining("A line of the file.") as unknown },
  ]);
  const image = { type: "image_url", image_url: { url: "http://127.0.0.1/a.png" } };
  const { status, text } = await chat(truewire, { messages: [user([image])] });
  expect([status, text]).toEqual([400, expect.stringContaining("The image cannot be sent")]);
});

test("an effort, the end of thinking and schemas arrive in Ollama's words", async () => {
  const models = {
    "thinks:latest": { capabilities: ["completion", "thinking"] },
    "plain:latest": { capabilities: ["completion"] },
  };
  const { upstream, truewire } = await serve({ models, reply: () => ({ thinking: "Hm.", text: "Yes." }) });
  const messages = [user("Hi")];
  const schema = { type: "object", properties: { a: { type: "string" } } };
  for (const model of Object.keys(models)) {
    await chat(truewire, { model, messages });
    await chat(truewire, { model, messages, reasoning_effort: "minimal" });
    await chat(truewire, { model, messages, reasoning_effort: "xhigh" });
    await chat(truewire, { model, messages, reasoning_effort: "none" });
    await send(truewire, "/messages", {
      model,
      messages,
      max_tokens: 2000,
      thinking: { type: "enabled", budget_tokens: 1024 },
    });
  }
  expect(upstream.requests.map(({ body }) => body["think"])).toEqual([
    undefined,
    "low",
    "max",
    false,
    true,
    ...Array.from({ length: 5 }, () => undefined),
  ]);
  await chat(truewire, {
    model: "thinks:latest",
    messages,
    stop: "END",
    temperature: 0,
    seed: 7,
    max_tokens: 50,
    response_format: { type: "json_schema", json_schema: { name: "a", schema } },
  });
  expect(upstream.requests.at(-1)?.body).toMatchObject({
    format: schema,
    options: { stop: ["END"], temperature: 0, seed: 7, num_predict: 50 },
    truncate: false,
    shift: false,
  });
  expect(upstream.refusals).toEqual([]);
});

// Ollama 0.17.4 refuses a level of thinking; the client got the refusal, in each session with an effort.
test("an effort is sent as thinking to an Ollama that takes no levels", async () => {
  const models = { "thinks:latest": { capabilities: ["completion", "thinking"] } };
  const { upstream, truewire } = await serve({ models, isOld: true, reply: () => ({ thinking: "Hm.", text: "Yes." }) });
  for (const effort of ["low", "high", "none"]) {
    const body = { model: "thinks:latest", messages: [user("Hi")], reasoning_effort: effort };
    expect(await chat(truewire, body)).toMatchObject({ status: 200 });
  }
  expect(upstream.refusals).toEqual(['think value "low" is not supported for this model']);
  expect(upstream.requests.map(({ body }) => body["think"]).slice(-3)).toEqual([true, true, false]);
});

test("counts and durations are the client's usage and timings", async () => {
  const { truewire } = await serve({ reply: () => "12345678" });
  const { json } = await chat(truewire, { messages: [user("Hi")], include_timings: true });
  expect(json["usage"]).toEqual({ prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 });
  expect(json["timings"]).toMatchObject({ prompt_ms: 500, predicted_ms: 2000, predicted_per_second: 1 });
  const cut = await chat(truewire, { messages: [user("Hi")], max_tokens: 1 });
  expect(cut.json["choices"]).toMatchObject([{ finish_reason: "length", message: { content: "1234" } }]);
});

describe("completions", () => {
  test("continue raw texts over /api/generate, streamed and whole, several at once", async () => {
    const { upstream, truewire } = await serve({ reply: ({ prompt }) => ` after ${prompt}` });
    const whole = await send(truewire, "/completions", { prompt: "once", max_tokens: 50, stop: ["\n"] });
    expect(whole.json["choices"]).toMatchObject([{ text: " after once", finish_reason: "stop" }]);
    expect(upstream.requests[0]).toMatchObject({
      path: "/api/generate",
      body: { prompt: "once", raw: true, options: { num_predict: 50, stop: ["\n"] }, truncate: false },
    });
    const streamed = await send(truewire, "/completions", { prompt: "once", stream: true });
    const texts = [...streamed.text.matchAll(/"text":"([^"]*)"/g)].map(([, text]) => text);
    expect(texts.join("")).toBe(" after once");
    const several = await send(truewire, "/completions", { prompt: ["a", "bcdefghi"], n: 2 });
    expect((several.json["choices"] as Json[]).map(({ text }) => text)).toEqual([
      " after a",
      " after a",
      " after bcdefghi",
      " after bcdefghi",
    ]);
    // Each prompt is counted once: 1 and 2 tokens.
    expect(several.json["usage"]).toMatchObject({ prompt_tokens: 3 });
  });

  test("of tokens or with an echo are refused in words", async () => {
    const { upstream, truewire } = await serve({ reply: () => "" });
    for (const body of [{ prompt: [[1, 2]] }, { prompt: "a", echo: true }])
      expect((await send(truewire, "/completions", body)).status).toBe(400);
    expect(upstream.requests).toEqual([]);
  });
});

test("several choices are several requests", async () => {
  const { upstream, truewire } = await serve({ reply: () => "Yes." });
  const { json } = await chat(truewire, { messages: [user("Hi")], n: 3 });
  expect(json["choices"]).toHaveLength(3);
  expect(upstream.requests).toHaveLength(3);
});

describe("an answer that fails", () => {
  test("after some text ends with the error, in each API", async () => {
    const { truewire } = await serve({ reply: () => ({ text: "Hello there", ends: "error" }) });
    const streamed = await chat(truewire, { messages: [user("Hi")], stream: true });
    expect(streamed.text).toMatch(/"content":"Hell"[^]*an error was encountered while running the model: CUDA error/);
    const message = await send(truewire, "/messages", { messages: [user("Hi")], max_tokens: 9, stream: true });
    expect(message.text).toMatch(/event: error\ndata: [^]*CUDA error/);
    const whole = await chat(truewire, { messages: [user("Hi")] });
    expect([whole.status, whole.text]).toEqual([500, expect.stringContaining("CUDA error")]);
  });

  test("before any text has its status", async () => {
    const { truewire } = await serve({ reply: () => ({ ends: "error" }) }, { retries: 0 });
    expect((await chat(truewire, { messages: [user("Hi")], stream: true })).status).toBe(500);
  });

  test("because the connection breaks is no normal end", async () => {
    const { truewire } = await serve({ reply: () => ({ text: "Hello there", ends: "cut" }) });
    const { text } = await chat(truewire, { messages: [user("Hi")], stream: true });
    expect(text).toContain('"content":"Hell"');
    expect(text).toMatch(/"error":\{"message":"The upstream's answer /);
    expect(text).not.toContain('"finish_reason":"stop"');
  });

  test("because there is no such model is a 404", async () => {
    const { truewire } = await serve({ reply: () => "" }, { api: "ollama", models: ["absent"] });
    const { status, text } = await chat(truewire, { model: "absent", messages: [user("Hi")] });
    expect([status, text]).toEqual([404, expect.stringContaining("not found")]);
  });
});

test("a client that leaves ends the request at Ollama", async () => {
  const { upstream, truewire } = await serve({ reply: () => ({ ends: "endless" }) });
  const leaving = new AbortController();
  const response = await fetch(`${truewire.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m:latest", stream: true, messages: [user("Hi")] }),
    signal: leaving.signal,
  });
  await response.body?.getReader().read();
  expect(upstream.aborted).toBe(0);
  leaving.abort();
  await until(() => upstream.aborted === 1, "the request ended");
});

test("a client that does not read holds Ollama back", async () => {
  const { upstream, truewire } = await serve({ reply: () => ({ ends: "endless" }) });
  const client = request(`${truewire.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
  });
  client.on("error", () => {});
  closeAfterTest(() => client.destroy());
  client.end(JSON.stringify({ model: "m:latest", stream: true, messages: [user("Hi")] }));
  const [response] = (await once(client, "response")) as [IncomingMessage];
  response.pause();
  // It stands still for twenty looks.
  let [last, still] = [-1, 0];
  await until(() => {
    still = upstream.written === last ? still + 1 : 0;
    last = upstream.written;
    return still >= 20;
  }, "Ollama waits");
  expect(last).toBeLessThan(32 * 1024 * 1024);
  response.resume();
  await until(() => upstream.written > last, "Ollama goes on");
});

describe("embeddings", () => {
  test("come from /api/embed, and texts that are too long are refused instead of cut", async () => {
    const models = { "e:latest": { capabilities: ["embedding"], contextLength: 512 } };
    const { upstream, truewire } = await serve({ models, reply: () => "" });
    const { json } = await send(truewire, "/embeddings", { model: "e:latest", input: ["ab", "abcd"] });
    expect(json).toMatchObject({
      data: [{ embedding: [2, 1, 0] }, { embedding: [4, 1, 0] }],
      usage: { prompt_tokens: 2 },
    });
    const long = await send(truewire, "/embeddings", { model: "e:latest", input: "word ".repeat(1000) });
    expect([long.status, long.json["error"]]).toMatchObject([400, { code: "context_length_exceeded" }]);
    expect(upstream.requests.map(contextOf)).toEqual([512, 512]);
    const tokens = await send(truewire, "/embeddings", { model: "e:latest", input: [[1, 2]] });
    expect([tokens.status, tokens.json["error"]]).toMatchObject([400, { param: "input[0]" }]);
    expect(upstream.requests.map(({ path }) => path)).toEqual(["/api/embed", "/api/embed"]);
    // It does not chat.
    const refused = await chat(truewire, { model: "e:latest", messages: [user("Hi")] });
    expect([refused.status, refused.json["error"]]).toMatchObject([
      400,
      { message: '"e:latest" does not support chat' },
    ]);
  });
});

// Ollama's default context cut, or refused, texts that the model takes.
test("embeddings of long texts get the context that they need", async () => {
  const models = { "e:latest": { capabilities: ["embedding"], contextLength: 32_768 } };
  const { upstream, truewire } = await serve({ models, reply: () => "" });
  for (const words of [10, 10_000, 10]) {
    const { status } = await send(truewire, "/embeddings", { model: "e:latest", input: ["a", "word ".repeat(words)] });
    expect(status).toBe(200);
  }
  expect(upstream.loads.map(({ numCtx }) => numCtx)).toEqual([8192, 32_768]);
});

describe("clients of Ollama's own API", () => {
  const ask = async (truewire: TruewireServer, path: string, body: Json): Promise<Json> => {
    const response = await fetch(`${truewire.url}${path}`, { method: "POST", body: JSON.stringify(body) });
    return (await response.json()) as Json;
  };

  test("get the whole conversation to the model, with their own options", async () => {
    const { upstream, truewire } = await serve({ reply: knowsPassword });
    const messages = [user("The password is swordfish."), assistant("OK."), ...talk(20), user("What is it?")];
    const options = { temperature: 0.5, mirostat: 2 };
    const answer = await ask(truewire, "/api/chat", { model: "m", messages, stream: false, options, think: false });
    expect(answer).toMatchObject({ message: { content: "It is swordfish." }, done: true, done_reason: "stop" });
    expect(upstream.requests[0]?.body).toMatchObject({
      model: "m:latest",
      think: false,
      options: { ...options, num_ctx: 16_384 },
    });
    // A smaller context would reload the model.
    for (const context of [2000, 20_000])
      await ask(truewire, "/api/chat", {
        model: "m",
        messages: [user("Hi")],
        stream: false,
        options: { num_ctx: context },
      });
    expect(upstream.requests.map(contextOf)).toEqual([16_384, 16_384, 20_000]);
    const raw = { model: "m", prompt: "once", raw: true, stream: false, keep_alive: "1h" };
    expect(await ask(truewire, "/api/generate", raw)).toMatchObject({ response: "I do not know a password." });
    expect(upstream.requests[3]).toMatchObject({ path: "/api/generate", body: { prompt: "once", keep_alive: "1h" } });
  });

  test("see what the models of the source can do", async () => {
    const { truewire } = await serve({
      models: { "m:latest": { capabilities: ["completion", "vision", "thinking"], contextLength: 4096 } },
      reply: () => "",
    });
    const shown = await ask(truewire, "/api/show", { model: "m" });
    expect(shown["capabilities"]).toEqual(["completion", "vision", "thinking"]);
  });
});

describe("an Ollama is recognized", () => {
  test.each(["", "/", "/v1", "/v1/", "/api"])("at the URL with the path %j", async (path) => {
    const { upstream, truewire } = await serve({ reply: () => "Yes." }, {}, path);
    await chat(truewire, { messages: [user("Hi")] });
    expect(upstream.requests.map((one) => one.path)).toEqual(["/api/chat"]);
    expect(upstream.paths.filter((one) => one.startsWith("POST /v1"))).toEqual([]);
  });

  test("unless the configuration names another API", async () => {
    const { upstream, truewire } = await serve({ reply: () => "Yes." }, { api: "chat" }, "/v1");
    await chat(truewire, { messages: [user("Hi")] });
    expect(upstream.requests.map((one) => one.path)).toEqual(["/v1/chat/completions"]);
  });
});

test("what the double refuses, it refuses as Ollama does", async () => {
  const upstream = await startOllama({ reply: () => "" });
  closeAfterTest(() => upstream.close());
  const ask = async (path: string, body: unknown): Promise<unknown> => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const response = await fetch(`${upstream.url}${path}`, { method: "POST", body: text });
    return [response.status, ((await response.json()) as Json)["error"]];
  };
  const hi = { role: "user", content: "Hi" };
  // Source: ollama 0.33.0 server/routes_generate_test.go, api/types_test.go; the words of Go's decoder are those of 0.17.4 that was asked.
  expect(await ask("/api/chat", "")).toEqual([400, "missing request body"]);
  expect(await ask("/api/chat", {})).toEqual([400, "model is required"]);
  expect(await ask("/api/chat", { model: "m", think: true, messages: [hi] })).toEqual([
    400,
    '"m" does not support thinking',
  ]);
  expect(await ask("/api/generate", { model: "m", prompt: "a", suffix: "b" })).toEqual([
    400,
    "registry.ollama.ai/library/m:latest does not support insert",
  ]);
  expect(await ask("/api/chat", { model: "m", top_logprobs: 21 })).toEqual([
    400,
    "top_logprobs must be between 0 and 20",
  ]);
  expect(await ask("/api/chat", { model: "m", think: "much" })).toEqual([
    400,
    'invalid think value: "much" (must be "high", "medium", "low", "max", true, or false)',
  ]);
  expect(await ask("/api/chat", { model: "m", messages: [{ role: "user", content: [] }] })).toEqual([
    400,
    "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string",
  ]);
  expect(await ask("/api/chat", { model: "m", messages: [{ ...hi, images: ["data:image/png;base64,AA=="] }] })).toEqual(
    [400, "illegal base64 data at input byte 4"],
  );
  const tool = (properties: unknown): Json => ({
    type: "function",
    function: { name: "f", parameters: { properties } },
  });
  expect(await ask("/api/chat", { model: "m", messages: [hi], tools: [tool({ a: true })] })).toEqual([
    400,
    "json: cannot unmarshal bool into Go struct field ToolFunctionParameters.tools.function.parameters.properties of type api.ToolProperty",
  ]);
  const call = { function: { name: "f", arguments: "{}" } };
  expect(await ask("/api/chat", { model: "m", messages: [{ role: "assistant", tool_calls: [call] }] })).toEqual([
    400,
    "Value looks like object, but can't find closing '}' symbol",
  ]);
  expect(await ask("/api/chat", { model: "m", messages: [hi], options: { temperature: "hot" } })).toEqual([
    500,
    'option "temperature" must be of type float32',
  ]);
});

// They were sent on without, and a client that asked for reasoning or tools got an answer that had none.
test("Ollama's API over Ollama: what a model is not capable of is refused in Ollama's words", async () => {
  const models = { "plain:latest": { capabilities: ["completion"] }, "full:latest": { capabilities: everything } };
  const { upstream, truewire } = await serve({ models, reply: () => "Hi." });
  const ask = async (model: string, more: object): Promise<readonly [number, unknown]> => {
    const response = await fetch(`${truewire.url}/api/chat`, {
      method: "POST",
      body: JSON.stringify({ model, messages: [user("Hi")], stream: false, ...more }),
    });
    const { error } = (await response.json()) as Json;
    return [response.status, error];
  };
  const tools = [{ type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } }];
  expect(await ask("plain:latest", { think: true })).toEqual([400, '"plain:latest" does not support thinking']);
  const refused = "registry.ollama.ai/library/plain:latest does not support tools";
  expect(await ask("plain:latest", { tools })).toEqual([400, refused]);
  expect(upstream.requests).toHaveLength(0);
  expect(await ask("plain:latest", { think: false, tools: [] })).toEqual([200, undefined]);
  expect(await ask("full:latest", { think: true, tools })).toEqual([200, undefined]);
});

const everything = ["completion", "tools", "thinking"];
