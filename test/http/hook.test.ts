import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { keyOf, recordingLog } from "../keys/support.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { answer, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { startScripted, say } from "../upstream/scripted-server.ts";

/** Masks e-mail addresses in requests and answers; the rest of a possible address is held back. */
const masks = `
const address = /[\\w.+-]+@[\\w-]+(?:\\.[\\w-]+)+/g;
const masked = (value) =>
  typeof value === "string" ? value.replace(address, "[address]")
  : Array.isArray(value) ? value.map(masked)
  : value !== null && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, masked(member)]))
  : value;
export default {
  request: (request) => ({ ...request, prompt: masked(request.prompt) }),
  answer({ text, isEnd }) {
    const at = isEnd ? text.length : text.search(/[\\w.@+-]*$/);
    return { text: masked(text.slice(0, at)), rest: text.slice(at) };
  },
};`;

async function moduleOf(code: string, name = "guard.mjs"): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "truewire-hook-"));
  closeAfterTest(() => rm(folder, { recursive: true }));
  const file = join(folder, name);
  await writeFile(file, code);
  return file;
}

interface Served {
  readonly url: string;
  readonly asked: GenerationRequest[];
  readonly lines: ReturnType<typeof recordingLog>["lines"];
  readonly server: Awaited<ReturnType<typeof createServer>>;
}

/** Serves engines that answer with the texts, and the hook. */
async function serve(
  hook: TruewireConfig["hook"],
  texts: readonly string[],
  more: Partial<TruewireConfig> = {},
): Promise<Served> {
  const asked: GenerationRequest[] = [];
  const engine = (name: string, batches: readonly string[]) =>
    new ScriptedEngine(async function* (request) {
      asked.push(request);
      yield* answer(batches);
    }, name);
  const models = [engine("big", texts), engine("small", ["I am small."])].map(
    (one) => ({ kind: "engine", engine: one }) as const,
  );
  const { log, lines } = recordingLog();
  const server = await createServer({ port: 0, models, hook, ...more }, { log });
  closeAfterTest(() => server.close(0));
  return { url: server.url, asked, lines, server };
}

async function post(url: string, path: string, body: object, headers: Record<string, string> = {}) {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

const messages = [{ role: "user", content: "I am ann@example.org. And you?" }];
const chat = (url: string, more: object = {}, headers: Record<string, string> = {}) =>
  post(url, "/v1/chat/completions", { model: "big", messages, ...more }, headers);

const apis: readonly (readonly [string, string, object])[] = [
  ["chat", "/v1/chat/completions", { messages }],
  ["completions", "/v1/completions", { prompt: messages[0]?.content }],
  ["Responses", "/v1/responses", { input: messages[0]?.content }],
  ["Messages", "/v1/messages", { max_tokens: 99, messages }],
  ["Ollama", "/api/chat", { messages, stream: false }],
  [
    "Gemini",
    "/v1beta/models/big:generateContent",
    { contents: [{ role: "user", parts: [{ text: messages[0]?.content }] }] },
  ],
];

/** The texts of a stream's deltas. */
const textOf = (stream: string): string =>
  [...stream.matchAll(/"(?:content|text|delta)":"((?:[^"\\]|\\.)*)"/g)]
    .map(([, text = ""]) => JSON.parse(`"${text}"`) as string)
    .join("");

describe.each(apis)("a hook, over %s,", (_, path, body) => {
  test("changes what is sent, and the answer", async () => {
    const { url, asked } = await serve(await moduleOf(masks), ["Write to bob", "@example", ".org, ple", "ase."]);
    const { status, text } = await post(url, path, { model: "big", ...body });
    expect(status).toBe(200);
    expect(text).toContain("Write to [address], please.");
    expect(text).not.toContain("example");
    expect(JSON.stringify(asked[0]?.prompt)).toContain("I am [address]. And you?");
    expect(asked[0]?.passthrough).toBeUndefined();
  });

  test("refuses in the form of the API, with its own words", async () => {
    const code = `export default { request() { throw Object.assign(new Error("Not on Sundays."), { name: "RequestError", status: 403 }); } };`;
    const { url, asked } = await serve(await moduleOf(code), ["Hi"]);
    const { status, text } = await post(url, path, { model: "big", ...body });
    expect([status, asked.length]).toEqual([403, 0]);
    expect(JSON.stringify(JSON.parse(text))).toContain("Not on Sundays.");
  });
});

describe("a streamed answer", () => {
  test("comes as the hook lets it pass, and nothing of it is lost", async () => {
    const { url } = await serve(await moduleOf(masks), ["To b", "ob@ex", "ample.org", " or ", "c@d.ee"]);
    const { text } = await chat(url, { stream: true });
    expect(textOf(text)).toBe("To [address] or [address]");
    expect(text).toContain("data: [DONE]");
  });

  test.each([
    ["before its first text has the status of the refusal", ["bad"], 403],
    ["later ends with the error of the API", ["good ", "bad"], 200],
  ])("that is refused %s", async (_, texts, status) => {
    const code = `export default { answer({ text }) { if (text.includes("bad")) throw Object.assign(new Error("No such words."), { name: "RequestError", status: 403 }); } };`;
    const { url } = await serve(await moduleOf(code), texts);
    const refused = await chat(url, { stream: true });
    expect(refused.status).toBe(status);
    expect(refused.text).toContain("No such words.");
    expect(refused.text).not.toContain("bad");
  });

  test("has whole tool calls for the hook, which may change their arguments", async () => {
    const parts = await moduleOf(
      `export default { answer: ({ type, name, text, isEnd }) => type === "tool-call" ? JSON.stringify({ name, was: JSON.parse(text), isEnd }) : undefined };`,
    );
    const call: readonly GenerationEvent[][] = [
      [
        { type: "start", choice: 0 },
        { type: "tool-call-start", choice: 0, index: 0, id: "c", name: "look" },
      ],
      [{ type: "tool-call-delta", choice: 0, index: 0, arguments: '{"at"' }],
      [{ type: "tool-call-delta", choice: 0, index: 0, arguments: ":1}" }],
      [
        { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
        { type: "finish", choice: 0, reason: "tool-calls" },
        { type: "end", end: { kind: "done" } },
      ],
    ];
    const engine = new ScriptedEngine(async function* () {
      yield* call;
    }, "big");
    const { url } = await serve(parts, [], { models: [{ kind: "engine", engine }] });
    const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
    const { text } = await chat(url, { tools });
    const { choices } = JSON.parse(text) as { choices: { message: { tool_calls: { function: object }[] } }[] };
    expect(choices[0]?.message.tool_calls[0]?.function).toEqual({
      name: "look",
      arguments: '{"name":"look","was":{"at":1},"isEnd":true}',
    });
  });

  test("whose client leaves while the hook holds it back is cancelled", async () => {
    let cancelled = false;
    const engine = new ScriptedEngine(async function* () {
      try {
        for (;;) {
          yield [
            { type: "start", choice: 0 },
            { type: "text-delta", choice: 0, text: "x" },
          ] as GenerationEvent[];
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      } finally {
        cancelled = true;
      }
    }, "big");
    const { url } = await serve(
      await moduleOf(`export default { answer: ({ text, isEnd }) => isEnd ? text : { text: "", rest: text } };`),
      [],
      {
        models: [{ kind: "engine", engine }],
      },
    );
    const leaving = new AbortController();
    const response = fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "big", messages, stream: true }),
      signal: leaving.signal,
    }).catch(() => {});
    setTimeout(() => leaving.abort(), 200);
    await response;
    await until(() => cancelled, "the engine is cancelled");
  });
});

test("an upstream of the client's own API gets what the hook has changed, and the client's own JSON where it has not", async () => {
  const bodies: string[] = [];
  const upstream = await startScripted((response, body) => {
    bodies.push(JSON.stringify(body));
    say(response, body, "ok");
  });
  closeAfterTest(() => upstream.close());
  const code = `export default { request: (request) => JSON.stringify(request).includes("ann@") ? { ...request, prompt: JSON.parse(JSON.stringify(request.prompt).replaceAll("ann@example.org", "Ann")) } : undefined };`;
  const { url } = await serve(await moduleOf(code), [], {
    models: [{ kind: "upstream", name: "u", url: upstream.url, models: { big: "big" }, api: "chat" }],
  });
  expect((await chat(url, { vendor_member: 1 })).status).toBe(200);
  expect((await chat(url, { messages: [{ role: "user", content: "Hi" }], vendor_member: 1 })).status).toBe(200);
  expect(bodies[0]).toContain("I am Ann. And you?");
  expect(bodies[0]).not.toContain("ann@");
  expect(bodies.every((body) => body.includes("vendor_member"))).toBe(true);
});

describe("a hook knows who asks", () => {
  const code = `export default { request(request, { headers, key, api }) {
    if (headers["x-team"] === "search") return { ...request, model: "small" };
    if (headers["x-tell"]) throw Object.assign(new Error(JSON.stringify({ key, api, names: Object.keys(headers) })), { name: "RequestError" });
  } };`;

  test("by key, API and headers, but never sees a credential", async () => {
    const { key, entry } = keyOf("alice");
    const { url } = await serve(await moduleOf(code), ["Hi"], { keys: [entry] });
    const headers = { authorization: `Bearer ${key}`, "x-tell": "1", cookie: "a=b", "x-api-key": key };
    const { status, text } = await chat(url, {}, headers);
    const told = JSON.parse((JSON.parse(text) as { error: { message: string } }).error.message) as { names: string[] };
    expect(status).toBe(400);
    expect(told).toMatchObject({ key: "alice", api: "chat" });
    expect(told.names).toContain("x-tell");
    expect(told.names).not.toContain("authorization");
    expect(told.names).not.toContain("cookie");
    expect(told.names).not.toContain("x-api-key");
  });

  test("may choose another model, but none that the key may not use", async () => {
    const [any, only] = [keyOf("any"), keyOf("only", { models: ["big"] })];
    const { url } = await serve(await moduleOf(code), ["Hi"], { keys: [any.entry, only.entry] });
    const as = (key: string) => ({ authorization: `Bearer ${key}`, "x-team": "search" });
    const routed = await chat(url, {}, as(any.key));
    expect(routed.text).toContain("I am small.");
    expect(routed.headers.get("x-truewire-model")).toBe("small");
    expect((await chat(url, {}, as(only.key))).status).toBe(404);
  });
});

test("embeddings are seen, too", async () => {
  const inputs: unknown[] = [];
  const engine = new ScriptedEngine(() => answer(["Hi"]), "e5");
  const handlers = {
    embed: async (request: { inputs: readonly unknown[] }) => {
      inputs.push(...request.inputs);
      return { vectors: request.inputs.map(() => [1]), promptTokens: 1 };
    },
  };
  const models = [{ kind: "engine", engine: Object.assign(engine, { handlers }) as never }] as const;
  const { url } = await serve(await moduleOf(masks), [], { models });
  const input = ["from ann@example.org", "plain"];
  expect((await post(url, "/v1/embeddings", { model: "e5", input })).status).toBe(200);
  expect(inputs).toEqual(["from [address]", "plain"]);
});

describe("a hook that fails", () => {
  test.each<[string, string]>([
    ["throws", `() => { throw new Error("secret of the hook"); }`],
    ["ends its thread", `() => process.exit(1)`],
    ["returns a number", `() => 7`],
    [
      "returns messages of another form",
      `(request) => ({ ...request, prompt: { ...request.prompt, messages: [{ role: "user", content: 5 }] } })`,
    ],
    ["returns a function", `() => () => {}`],
    ["returns a cycle", `() => { const one = {}; one.one = one; return one; }`],
    ["takes all memory", `() => { const all = []; for (;;) all.push(new Array(1e6).fill({})); }`],
    ["returns too much", `() => ({ text: "x".repeat(100 * 1024 * 1024) })`],
  ])("and %s ends only that request, says nothing of itself, and serves the next one", async (_, request) => {
    const code = `export default { request(request) { if (JSON.stringify(request.prompt).includes("fail")) return (${request})(request); } };`;
    const { url, lines } = await serve({ module: await moduleOf(code), timeout: "60s" }, ["Hi"]);
    const [failed, served] = await Promise.all([
      chat(url, { messages: [{ role: "user", content: "fail" }] }),
      chat(url),
    ]);
    expect(failed.status).toBe(500);
    expect(failed.text).toContain("The hook of this server failed. The server's log says why");
    expect(failed.text).not.toMatch(/secret|guard|at /);
    expect(failed.headers.get("x-should-retry")).toBe("false");
    const line = lines.find((one) => one.message === "failed");
    expect(line?.["cause"]).toEqual(expect.any(String));
    expect(JSON.stringify(lines)).not.toContain("secret");

    expect(served.status).toBe(200);
    expect((await chat(url)).status).toBe(200);
  });

  test.each(["refuse", "pass"] as const)("because it is too late: %s, as configured", async (onTimeout) => {
    const code = `export default { request(request) { if (JSON.stringify(request.prompt).includes("hang")) for (;;); } };`;
    const { url, lines } = await serve({ module: await moduleOf(code), timeout: "300ms", onTimeout }, ["Hi"]);
    // The first call starts its thread within the time limit, too.
    const late = await chat(url, { messages: [{ role: "user", content: "hang" }] });
    if (onTimeout === "refuse")
      expect([late.status, late.text]).toEqual([503, expect.stringContaining("did not answer within 300 ms")]);
    else {
      expect(late.status).toBe(200);
      expect(lines).toContainEqual(
        expect.objectContaining({ message: expect.stringContaining("has passed unseen") as string }),
      );
    }
  });

  test.each<[string, string]>([
    ["holds back too much", `({ text, isEnd }) => isEnd ? text : { text: "", rest: text + "x".repeat(300_000) }`],
    ["adds too much", `() => "x".repeat(300_000)`],
    ["holds back the end", `({ text }) => ({ text: "", rest: text })`],
    ["returns garbage", `() => ({ txt: 5 })`],
  ])("and %s of an answer ends it", async (_, code) => {
    const { url } = await serve(await moduleOf(`export default { answer: ${code} };`), ["Hello ", "world"]);
    const { status, text } = await chat(url, { stream: true });
    expect(status).toBe(500);
    expect(text).toContain("The hook of this server failed.");
  });

  test("or is none stops the start with a sentence", async () => {
    await expect(serve(await moduleOf("export default 5;"), [])).rejects.toThrow(
      "its default export is no hook; expected an object",
    );
    await expect(serve(await moduleOf("syntax error"), [])).rejects.toThrow("could not be loaded");
  });
});

describe("a hook that rewrites earlier messages", () => {
  const turn = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content: `Text ${at}` }));

  test("is warned about once for each conversation, in the log and as the reason of the cache miss", async () => {
    const code = `let count = 0; export default { request(request) { count++; return { ...request, prompt: { ...request.prompt, messages: request.prompt.messages.map((message, at) => at === 0 ? { ...message, content: "Call " + count } : message) } }; } };`;
    const { url, lines } = await serve({ module: await moduleOf(code), threads: 1 }, ["Hi"]);
    for (const count of [1, 3, 5]) await chat(url, { messages: turn(count) });
    const warned = lines.filter(({ message }) => message.startsWith("the hook has changed"));
    expect(warned).toMatchObject([{ where: "messages[0]" }]);
    expect(lines.filter(({ cache }) => cache !== undefined)).toMatchObject([
      { cache: { cause: "hook", where: "messages[0]" } },
    ]);
  });

  test("always in the same way is not", async () => {
    const { url, lines } = await serve(await moduleOf(masks), ["Hi"]);
    const talk = [
      ...messages,
      { role: "assistant", content: "Hi" },
      { role: "user", content: "More, for ann@example.org" },
    ];
    for (const count of [1, 3]) await chat(url, { messages: talk.slice(0, count) });
    expect(lines.filter(({ message }) => message.startsWith("the hook has changed"))).toEqual([]);
  });
});

test("a hook in code, and another one after a reload", async () => {
  const own = { request: () => undefined, answer: ({ text }: { text: string }) => text.toUpperCase() };
  const { url, server } = await serve(own, ["Hello"]);
  expect((await chat(url)).text).toContain("HELLO");
  const engine = new ScriptedEngine(() => answer(["Hello"]), "big");
  await server.reload({
    models: [{ kind: "engine", engine }],
    hook: await moduleOf(`export default { answer: ({ text }) => text + "!" };`),
  });
  expect((await chat(url)).text).toContain("Hello!");
});

test("examples/guard.ts masks addresses, refuses tools to guests, and sends personal data to a model of its own", async () => {
  const guest = keyOf("guest");
  const texts = ["Ask bo", "b@example.org", " or c@d.ee"];
  const { url, asked } = await serve("examples/guard.ts", texts, { keys: [guest.entry] });
  const as = { authorization: `Bearer ${guest.key}` };
  const { text } = await chat(url, { stream: true }, as);
  expect(textOf(text)).toBe("Ask [address] or [address]");
  expect(JSON.stringify(asked[0]?.prompt)).toContain("I am [address]. And you?");
  const tools = [{ type: "function", function: { name: "look" } }];
  expect(await chat(url, { tools }, as)).toMatchObject({ status: 403 });
  expect(await chat(url, {}, { ...as, "x-data": "personal" })).toMatchObject({ status: 404 });
});
