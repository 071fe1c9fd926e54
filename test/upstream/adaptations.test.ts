import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { closeAfterTest } from "../support/close-after-test.ts";
import { docx, pdf } from "../support/office-files.ts";
import { startTruewire } from "../support/serve.ts";
import { llamaServer } from "../doubles/llama-server.ts";
import { ollama } from "../doubles/ollama.ts";
import { listOf, objectOf, startChat } from "../doubles/chat-server.ts";
import type { Json, ChatServer, Turn, Turns } from "../doubles/chat-server.ts";
import { vllm } from "../doubles/vllm.ts";
import { xgrammarRefusal } from "../doubles/xgrammar.ts";

/* Requests that the servers refuse, and the answers of the same servers through Truewire, as a process with its threads. */

interface Served {
  readonly upstream: Awaited<ReturnType<typeof startChat>>;
  /** Sends a request to Truewire, or with `direct` to the server itself. */
  ask(
    path: string,
    body: Json,
    direct?: "direct",
  ): Promise<{ status: number; headers: Headers; json: Json; text: string }>;
  metrics(): Promise<Readonly<Record<string, number>>>;
}

async function serve(server: ChatServer, turn: Turns, settings: Json = {}): Promise<Served> {
  const upstream = await startChat(server, turn);
  closeAfterTest(() => upstream.close());
  const folder = mkdtempSync(join(tmpdir(), "truewire-adapt-"));
  closeAfterTest(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "truewire.json");
  const model = { kind: "upstream", url: upstream.url, ...settings };
  writeFileSync(file, JSON.stringify({ port: 0, metrics: "open", models: [model] }));
  const truewire = await startTruewire(["--config", file]);
  closeAfterTest(() => truewire.stop());
  return {
    upstream,
    async ask(path, body, direct) {
      const response = await fetch(direct ? upstream.url.replace(/\/v1$/, path) : `${truewire.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
        body: JSON.stringify({ model: "m", ...body }),
      });
      const text = await response.text();
      const json = text.startsWith("{") ? (JSON.parse(text) as Json) : {};
      return { status: response.status, headers: response.headers, json, text };
    },
    async metrics() {
      const text = await (await fetch(`${truewire.url}/metrics`)).text();
      const counted = [...text.matchAll(/truewire_repairs_total\{[^}]*repair="([^"]+)"[^}]*\} (\d+)/g)];
      return Object.fromEntries(counted.map(([, name, count]) => [name, Number(count)]));
    },
  };
}

const chat = "/v1/chat/completions";
const user = (content: unknown): Json => ({ messages: [{ role: "user", content }] });
const callsOf = ({ json }: { readonly json: Json }): readonly Json[] =>
  listOf(objectOf(listOf(json["choices"])[0]?.["message"])["tool_calls"]).map((call) => objectOf(call["function"]));

const now = { type: "function", function: { name: "now", parameters: { type: "object", properties: {} } } };
const mail = {
  type: "function",
  function: {
    name: "mail",
    parameters: {
      type: "object",
      properties: {
        // What zod 4 writes for `z.email()`, in short.
        to: { type: "string", pattern: "^(?!\\.)(?!.*\\.\\.)([a-z.]+)@([a-z]+\\.)+[a-z]{2,}$" },
        copies: { type: "integer", minimum: 1 },
      },
      required: ["to"],
    },
  },
};
const tools = { tools: [now, mail] };
const send = (text: string): Turn => ({ calls: [{ name: "mail", input: JSON.parse(text) as Json }] });

describe("one tool with a look-ahead", () => {
  test("took all tools down, and is served now with arguments that fit", async () => {
    const { upstream, ask, metrics } = await serve(llamaServer({ isOlder: true }), send('{"to":"ada@example.org"}'));
    const before = await ask(chat, { ...user("Hi"), ...tools }, "direct");
    expect([before.status, before.text]).toEqual([400, expect.stringContaining("failed to parse grammar")]);
    const after = await ask(chat, { ...user("Hi"), ...tools });
    expect(after.status).toBe(200);
    expect(callsOf(after)).toEqual([{ name: "mail", arguments: '{"to":"ada@example.org"}' }]);
    const [sentNow, sentMail] = listOf(upstream.requests.at(-1)?.["tools"]);
    expect(sentNow).toEqual(now);
    expect(JSON.stringify(sentMail)).toContain("JSON Schema: ");
    expect(await metrics()).toEqual({ "simple-schema": 1 });
  });

  test.each([true, false])("arguments of a wrong type are corrected (stream: %s)", async (stream) => {
    const { ask, metrics } = await serve(llamaServer(), send('{"to":"ada@example.org","copies":"2"}'));
    const { text } = await ask(chat, { ...user("Hi"), ...tools, stream });
    expect(text).toContain(String.raw`{\"to\":\"ada@example.org\",\"copies\":2}`);
    expect(await metrics()).toEqual({ "simple-schema": 1, "schema-repaired": 1 });
  });

  test.each([true, false])("arguments that do not fit are requested once again (stream: %s)", async (stream) => {
    let turns = 0;
    const { upstream, ask, metrics } = await serve(llamaServer(), () =>
      send(turns++ === 0 ? '{"to":"..@x"}' : '{"to":"ada@example.org"}'),
    );
    const { text } = await ask(chat, { ...user("Hi"), ...tools, stream });
    expect(text).toContain("ada@example.org");
    expect(text).not.toContain("..@x");
    expect(text.split('"role":"assistant"')).toHaveLength(2);
    expect(upstream.requests).toHaveLength(2);
    expect(await metrics()).toEqual({ "simple-schema": 2, "schema-repeated": 1 });
  });

  test("arguments that never fit are sent with a warning", async () => {
    const { upstream, ask, metrics } = await serve(llamaServer(), send('{"to":"..@x"}'));
    const answer = await ask(chat, { ...user("Hi"), ...tools });
    expect(callsOf(answer)).toEqual([{ name: "mail", arguments: '{"to":"..@x"}' }]);
    expect(answer.headers.get("x-truewire-warning")).toContain("the tool mail does not fit the client's JSON Schema");
    expect(upstream.requests).toHaveLength(2);
    expect(await metrics()).toMatchObject({ "schema-violation": 1 });
  });

  // The model's own patterns run in a thread: this one takes years.
  test("a pattern that takes too long is not checked, and does not stop the server", async () => {
    const slow = { ...mail.function, parameters: { properties: { to: { type: "string", pattern: "^(?=(a+)+$)" } } } };
    const { ask, metrics } = await serve(llamaServer(), send(JSON.stringify({ to: `${"a".repeat(50)}!` })));
    const asked = ask(chat, { ...user("Hi"), tools: [{ type: "function", function: slow }] });
    expect((await ask(chat, user("Hi"))).status).toBe(200);
    expect((await asked).status).toBe(200);
    expect(await metrics()).toMatchObject({ "schema-unchecked": 1 });
  });

  test("a JSON answer is corrected, too, where it is not streamed", async () => {
    const schema = {
      type: "object",
      properties: { n: { type: "integer" }, at: { $ref: "#/$defs/a~1b" } },
      $defs: { "a/b": { type: "string" } },
    };
    const format = { response_format: { type: "json_schema", json_schema: { name: "n", schema } } };
    const constrained = {
      ...format,
      response_format: {
        ...format.response_format,
        json_schema: {
          name: "n",
          schema: {
            ...schema,
            patternProperties: { "^(?=x)": true },
            properties: { ...schema.properties, n: { type: "integer" }, x: { type: "string", pattern: "^(?=a)" } },
          },
        },
      },
    };
    const { ask } = await serve(llamaServer(), '{"n":"5"}');
    expect((await ask(chat, { ...user("Hi"), ...constrained }, "direct")).status).toBe(400);
    const { json } = await ask(chat, { ...user("Hi"), ...constrained });
    expect(objectOf(listOf(json["choices"])[0]?.["message"])["content"]).toBe('{"n":5}');
  });

  test("through the other APIs", async () => {
    const { ask } = await serve(llamaServer(), send('{"to":"ada@example.org","copies":"2"}'));
    const { name, parameters } = mail.function;
    const messages = await ask("/v1/messages", {
      ...user("Hi"),
      max_tokens: 9,
      tools: [{ name, input_schema: parameters }],
    });
    expect(listOf(messages.json["content"])).toMatchObject([{ type: "tool_use", input: { copies: 2 } }]);
    const responses = await ask("/v1/responses", {
      input: "Hi",
      tools: [{ type: "function", name, parameters, strict: false }],
    });
    expect(listOf(responses.json["output"])).toMatchObject([
      { type: "function_call", arguments: expect.stringContaining('"copies":2') as unknown },
    ]);
  });
});

// vLLM 0.32 compiles with llguidance what xgrammar does not take; its words were not known, and the client got the refusal.
test("vLLM is learned from a refusal of llguidance", async () => {
  const schema = { type: "array", items: { type: "integer" }, uniqueItems: true };
  const body = { ...user("Hi"), response_format: { type: "json_schema", json_schema: { name: "n", schema } } };
  const { upstream, ask } = await serve(vllm, "[7, 7]");
  for (let at = 0; at < 2; at++) {
    const { status, headers } = await ask(chat, body);
    expect(status).toBe(200);
    expect(headers.get("x-truewire-warning")).toContain("unique");
  }
  expect(upstream.refusals).toEqual([expect.stringContaining("Grammar error: Unimplemented keys")]);
});

test("an unknown server with xgrammar is learned from its refusal", async () => {
  const schema = { type: "object", properties: { n: { type: "integer", multipleOf: 5 } } };
  const body = { ...user("Hi"), response_format: { type: "json_schema", json_schema: { name: "n", schema } } };
  const server: ChatServer = {
    name: "vLLM with xgrammar",
    owner: "other",
    refusal(request) {
      const why = xgrammarRefusal(objectOf(objectOf(request["response_format"])["json_schema"])["schema"]);
      return why === undefined
        ? undefined
        : { status: 400, body: { error: { message: why, type: "BadRequestError", code: 400 } } };
    },
  };
  const { upstream, ask } = await serve(server, '{"n":7}');
  // The answer to the request that was refused was not judged: it was known too late that its schema is simpler.
  for (let at = 0; at < 2; at++) {
    const { status, headers } = await ask(chat, body);
    expect(status).toBe(200);
    expect(headers.get("x-truewire-warning")).toContain("must be multiple of 5");
  }
  expect(upstream.refusals).toHaveLength(1);
});

describe("files for a model that takes none", () => {
  const report = `data:application/pdf;base64,${pdf("The profit is 7 %.").toString("base64")}`;
  const word = docx("Minutes of May").toString("base64");
  const sentTo = ({ upstream }: Served): string => JSON.stringify(upstream.requests.at(-1)?.["messages"]);

  test("a PDF was refused, and is read", async () => {
    const served = await serve(llamaServer(), "Seven.");
    const body = user([
      { type: "text", text: "How much?" },
      { type: "file", file: { filename: "report.pdf", file_data: report } },
    ]);
    const before = await served.ask(chat, body, "direct");
    expect([before.status, before.text]).toEqual([400, expect.stringContaining("unsupported content[].type")]);
    expect((await served.ask(chat, body)).status).toBe(200);
    expect(sentTo(served)).toContain(String.raw`<file name=\"report.pdf\">\nThe profit is 7 %.\n</file>`);
    expect(await served.metrics()).toEqual({ "file-text": 1 });
  });

  test("through Responses and Messages", async () => {
    const served = await serve(vllm, "Seven.");
    const input = [
      { role: "user", content: [{ type: "input_file", filename: "a.docx", file_data: `data:x/y;base64,${word}` }] },
    ];
    expect((await served.ask("/v1/responses", { input })).status).toBe(200);
    expect(sentTo(served)).toContain("Minutes of May");
    const document = {
      type: "document",
      title: "r",
      source: { type: "base64", media_type: "application/pdf", data: report.split(",")[1] },
    };
    expect((await served.ask("/v1/messages", { max_tokens: 9, ...user([document]) })).status).toBe(200);
    expect(sentTo(served)).toContain("The profit is 7 %.");
  });

  test.each([
    [
      chat,
      user([
        { type: "text", text: "a" },
        { type: "file", file: { file_data: "data:;base64,AAECAw==" } },
      ]),
      "messages[0].content[1]",
    ],
    [
      "/v1/responses",
      {
        input: [{ role: "user", content: [{ type: "input_file", file_data: "data:;base64,AAECAw==", filename: "x" }] }],
      },
      "input[0].content[0]",
    ],
    [
      chat,
      user([{ type: "file", file: { file_data: "http://127.0.0.1:1/a.pdf" } }]),
      "127.0.0.1 is not a public address",
    ],
  ])("%s: a file that cannot be read is refused at its place", async (path, body, place) => {
    const { upstream, ask } = await serve(llamaServer(), "Hi");
    const { status, text } = await ask(path, body);
    expect(status).toBe(400);
    expect(text).toContain(place);
    expect(upstream.requests).toHaveLength(0);
  });

  test("adapt: { file-text: off } sends them as they are", async () => {
    const { ask } = await serve(llamaServer(), "Hi", { adapt: { "file-text": "off" } });
    const { status, text } = await ask(chat, user([{ type: "file", file: { file_data: report } }]));
    expect([status, text]).toEqual([400, expect.stringContaining("unsupported content[].type")]);
  });
});

test("an image of a type that the server does not take needs sharp, and the error says so", async () => {
  const webp = Buffer.from(
    "RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0",
    "latin1",
  );
  const { ask } = await serve(llamaServer(), "Hi");
  const image = (type: string, bytes: Buffer): Json =>
    user([{ type: "image_url", image_url: { url: `data:image/${type};base64,${bytes.toString("base64")}` } }]);
  expect((await ask(chat, image("webp", webp), "direct")).status).toBe(400);
  const { status, text } = await ask(chat, image("webp", webp));
  expect([status, text]).toEqual([400, expect.stringContaining('run \\"npm install sharp\\"')]);
  const png = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  );
  expect((await ask(chat, image("png", png))).status).toBe(200);
});

describe("a prompt that Ollama cuts", () => {
  const long = user(Array.from({ length: 6000 }, (_, at) => `word${at}`).join(" "));
  const usage = { stream_options: { include_usage: true } };

  test("is an answer without its beginning today, and an error that says what to do", async () => {
    const { ask, metrics } = await serve(ollama(), "Hm?");
    const before = await ask(chat, long, "direct");
    expect([before.status, objectOf(before.json["usage"])["prompt_tokens"]]).toEqual([200, 2050]);
    const { status, json } = await ask(chat, long);
    expect(status).toBe(400);
    expect(json["error"]).toMatchObject({
      code: "context_length_exceeded",
      message: expect.stringContaining("OLLAMA_CONTEXT_LENGTH=32768") as unknown,
    });
    expect(await metrics()).toEqual({ "prompt-truncated": 1 });
  });

  test.each([usage, {}])("in a stream, the error comes in place of the end (%j)", async (options) => {
    const { ask } = await serve(ollama(), "Hm?");
    const { status, text } = await ask(chat, { ...long, stream: true, ...options });
    expect([status, text]).toEqual([200, expect.stringContaining("Hm?")]);
    expect(text).toContain("context_length_exceeded");
    expect(text).not.toContain('"usage":{');
  });

  test("onTruncation: warn sends the answer with a warning, allow without", async () => {
    const warned = await serve(ollama(), "Hm?", { onTruncation: "warn" });
    const { status, headers } = await warned.ask(chat, long);
    expect([status, headers.get("x-truewire-warning")]).toEqual([200, expect.stringContaining("has cut the prompt")]);
    const allowed = await serve(ollama(), "Hm?", { onTruncation: "allow" });
    const answer = await allowed.ask(chat, long);
    expect([answer.status, answer.headers.get("x-truewire-warning")]).toEqual([200, null]);
    expect(await allowed.metrics()).toEqual({});
  });

  test("a prompt that fits is answered, and a stream has usage only if it was requested", async () => {
    const { ask } = await serve(ollama(), "Hi.");
    const { status, text } = await ask(chat, { ...user("Hello there"), stream: true });
    expect([status, text.includes('"usage":{')]).toEqual([200, false]);
    expect((await ask(chat, { ...user("Hello there"), stream: true, ...usage })).text).toContain('"usage":{');
  });

  test("is refused before it is sent where the server can count", async () => {
    const server: ChatServer = {
      ...ollama(),
      others: { "/tokenize": { tokens: Array.from({ length: 6001 }, () => 1) } },
    };
    const { upstream, ask } = await serve(server, "Hi.", {
      requests: { truncates: true, contextSize: 4096, tokenizer: "/tokenize" },
    });
    const { status, text } = await ask(chat, long);
    expect([status, text]).toEqual([400, expect.stringContaining("The prompt has 6001 tokens")]);
    expect(upstream.requests).toHaveLength(0);
  });

  test("several choices of a server with one are several requests", async () => {
    const { upstream, ask, metrics } = await serve(ollama(), "Hi.");
    const { json } = await ask(chat, { ...user("Hello"), n: 3 });
    expect(await metrics()).toEqual({ "one-choice": 1 });
    expect(listOf(json["choices"]).map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(json["usage"]).toMatchObject({ completion_tokens: 15 });
    expect(upstream.requests).toHaveLength(3);
  });
});
