import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RunningTruewire, runTruewire, startTruewire } from "../support/serve.ts";

/** Programs as users write them, one behaviour each. */
const programs = {
  "sync.js": `export default ({ messages }) => "You said: " + messages.at(-1).content;`,
  "async.js": `export default async ({ messages }) => ({ text: "You said: " + messages.at(-1).content });`,
  "generator.ts": `export default function* ({ messages }: { messages: { content: string }[] }) { for (const word of ["You", " said: ", messages.at(-1)!.content]) yield word; }`,
  "slow.js": `import { existsSync } from "node:fs"; export default () => { while (!existsSync(new URL("enough", import.meta.url))); return "done"; }`,
  "ticker.js": `export default async function* () { for (let i = 0; i < 20; i++) { yield i + " "; await new Promise((go) => setTimeout(go, 5)); } }`,
  "refuses.js": `export default () => { const error = new Error("No such city."); error.name = "RequestError"; error.status = 422; error.param = "messages"; throw error; };`,
  "fails.js": `export default async function* () { yield "half"; throw new Error("disk full"); }`,
  "fails-early.js": `export default () => { throw new Error("disk full"); };`,
  "dies.js": `export default async function* () { yield "half"; process.exit(7); }`,
  "endless.js": `export default async function* () { try { for (let i = 0; ; i++) { yield "x"; await new Promise((go) => setTimeout(go, 5)); } } finally { console.error("ended by its reader"); } }`,
  "flood.js": `export default async function* () { for (let i = 0; ; i++) { globalThis.count = i; yield "x".repeat(10000); if (i % 100 === 0) console.error("made " + i); } }`,
  "object.js": `export default ({ responseSchema }) => ({ object: { asked: responseSchema.name } });`,
  "calls.js": `export default () => ({ toolCalls: [{ name: "add", arguments: { a: 1, b: 2 } }] });`,
  // This folder has no node_modules: the program's "truewire" is the one that serves it.
  "lone.ts": `import { defineProgram, RequestError } from "truewire"; export default defineProgram(({ messages }) => { if (messages.length > 1) throw new RequestError("Too long.", { param: "messages" }); return "alone"; });`,
  "lone-module.mjs": `import { RequestError } from "truewire"; export default () => { throw new RequestError("No.", { code: "no" }); };`,
  "tools.js": `export default ({ tools }) => JSON.stringify(tools);`,
  "options.js": `export default ({ options }) => JSON.stringify(options);`,
};

let folder: string;
let server: RunningTruewire;
let client: OpenAI;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "truewire-programs-"));
  await Promise.all(Object.entries(programs).map(([name, text]) => writeFile(join(folder, name), text)));
  server = await startTruewire(Object.keys(programs).map((name) => join(folder, name)));
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});

afterAll(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

const ask = (model: string, more: object = {}) =>
  client.chat.completions.create({
    model,
    messages: [{ role: "user", content: "hello" }],
    ...more,
  }) as Promise<OpenAI.ChatCompletion>;

async function streamed(model: string): Promise<string> {
  const stream = client.chat.completions.stream({ model, messages: [{ role: "user", content: "hello" }] });
  return (await stream.finalMessage()).content ?? "";
}

describe("every kind of program answers, streamed as not", () => {
  test.each(["sync", "async", "generator"])("%s", async (model) => {
    expect((await ask(model)).choices[0]?.message.content).toBe("You said: hello");
    expect(await streamed(model)).toBe("You said: hello");
  });
});

test("a program that computes without giving way stops no other stream", async () => {
  const slow = Promise.all([ask("slow"), ask("slow")]);
  // The programs compute until this stream has ended.
  expect(await streamed("ticker")).toBe(Array.from({ length: 20 }, (_, i) => `${i} `).join(""));
  await writeFile(join(folder, "enough"), "");
  expect((await slow).map((answer) => answer.choices[0]?.message.content)).toEqual(["done", "done"]);
});

test("a request that the program refuses has its status, message and param", async () => {
  await expect(ask("refuses")).rejects.toMatchObject({
    status: 422,
    param: "messages",
    message: expect.stringContaining("No such city."),
  });
});

test("an exception is a 500 before the first text and an error inside the stream after it; never a stack trace", async () => {
  const early = await fetch(`${server.url}/v1/chat/completions`, post("fails-early", false));
  expect(early.status).toBe(500);
  const message = `The program failed. The server's log says why, under the request id ${early.headers.get("x-request-id")}.`;
  expect(await early.json()).toEqual({ error: { message, type: "server_error", param: null, code: null } });
  expect(early.headers.get("x-should-retry")).toBe("false");
  await expect.poll(() => server.stderr()).toMatch(/"cause":"Error\\n +at .*fails-early\.js:1/);
  expect(server.stderr()).not.toContain("disk full");
  const late = await (await fetch(`${server.url}/v1/chat/completions`, post("fails", true))).text();
  expect(late).toContain('"content":"half"');
  expect(late).toMatch(
    /data: \{"error":\{"message":"The program failed\. The server's log says why[^\n]+\n\ndata: \[DONE\]\n\n$/,
  );
  expect(late).not.toContain('finish_reason":"stop');
});

test("with --show-errors, clients are told the words of any exception", async () => {
  const shown = await startTruewire([join(folder, "fails-early.js"), "--show-errors"]);
  const response = await fetch(`${shown.url}/v1/chat/completions`, post("fails-early", false));
  expect(await response.text()).toContain("The program failed: disk full");
  await shown.stop();
});

// It was a 400, though nothing is enforced on a program.
test("a custom tool with a Lark grammar reaches the program", async () => {
  const format = { type: "grammar", grammar: { syntax: "lark", definition: "start: WORD" } };
  const tools = [{ type: "custom", custom: { name: "shout", format } }];
  const answered = await ask("tools", { tools });
  expect(JSON.parse(String(answered.choices[0]?.message.content))).toMatchObject(tools);
});

test("a program that ends its thread ends its own answer only, and the next request is served", async () => {
  const body = await (await fetch(`${server.url}/v1/chat/completions`, post("dies", true))).text();
  expect(body).toContain('"content":"half"');
  expect(body).toMatch(/"error":.*\n\ndata: \[DONE\]\n\n$/);
  expect(await (await fetch(`${server.url}/v1/chat/completions`, post("dies", true))).text()).toContain(
    '"content":"half"',
  );
});

test("a client that leaves ends the program, whose finally block runs", async () => {
  const leave = new AbortController();
  const answer = await fetch(`${server.url}/v1/chat/completions`, { ...post("endless", true), signal: leave.signal });
  const reader = answer.body?.getReader();
  await reader?.read();
  leave.abort();
  await expect.poll(() => server.stderr()).toContain("ended by its reader");
});

test("a reader that stops reading stops the program", async () => {
  const leave = new AbortController();
  const answer = await fetch(`${server.url}/v1/chat/completions`, { ...post("flood", true), signal: leave.signal });
  await answer.body?.getReader().read();
  const made = () => Math.max(0, ...[...server.stderr().matchAll(/made (\d+)/g)].map((match) => Number(match[1])));
  // Socket buffers take some megabytes; then nothing more may be made.
  let last = -1;
  await expect
    .poll(() => {
      const before = last;
      last = made();
      return last === before;
    })
    .toBe(true);
  expect(last * 10_000).toBeLessThan(64 * 1024 * 1024);
  leave.abort();
});

test("structured output, tool calls and options go through", async () => {
  const schema = { name: "answer", schema: { type: "object" } };
  const object = await ask("object", { response_format: { type: "json_schema", json_schema: schema } });
  expect(object.choices[0]?.message.content).toBe('{"asked":"answer"}');
  const tools = [{ type: "function", function: { name: "add", parameters: { type: "object", properties: {} } } }];
  const calls = await ask("calls", { tools });
  expect(calls.choices[0]).toMatchObject({
    finish_reason: "tool_calls",
    message: { content: null, tool_calls: [{ function: { name: "add", arguments: '{"a":1,"b":2}' } }] },
  });
  const options = await ask("options", { temperature: 0, requirements: ["short"], stream: false });
  expect(JSON.parse(options.choices[0]?.message.content ?? "")).toEqual({ temperature: 0, requirements: ["short"] });
});

test("a program may import truewire without having it installed", async () => {
  expect((await ask("lone")).choices[0]?.message.content).toBe("alone");
  await expect(ask("lone-module")).rejects.toMatchObject({ status: 400, code: "no" });
});

test("a legacy completion's prompt is one user message", async () => {
  const completion = await client.completions.create({ model: "sync", prompt: "hello", stop: ["hel"] });
  expect(completion.choices[0]).toMatchObject({ text: "You said: ", finish_reason: "stop" });
});

test.each([
  ["missing.js", undefined, "does not exist"],
  ["broken.ts", "export default (", "could not be loaded"],
  [
    "number.js",
    "export default 7;",
    "needs a default export that is a function, an AI SDK language model or an engine; it is a number",
  ],
])("%s cannot be served: one clear sentence and exit code 1", async (name, text, sentence) => {
  const path = join(folder, name);
  if (text !== undefined) await writeFile(path, text);
  const { code, stderr } = await runTruewire(["serve", "--port", "0", path]);
  expect(code).toBe(1);
  expect(stderr).toContain(sentence);
  expect(stderr).not.toMatch(/\n\s+at /);
});

test("with --watch a changed program is reloaded, and a broken one leaves the previous version in use", async () => {
  const path = join(folder, "watched.js");
  await writeFile(path, `export default () => "one";`);
  const watched = await startTruewire(["--watch", path]);
  try {
    const other = new OpenAI({ baseURL: `${watched.url}/v1`, apiKey: "none", maxRetries: 0 });
    const say = async () =>
      (await other.chat.completions.create({ model: "watched", messages: [{ role: "user", content: "?" }] })).choices[0]
        ?.message.content;
    expect(await say()).toBe("one");
    await writeFile(path, `export default () => "two";`);
    await expect.poll(say).toBe("two");
    // A log in the folder loaded the program anew with every line, and the line of that loading was the next.
    await expect.poll(() => watched.stderr()).toContain("reloaded");
    const loadings = watched.stderr().split("reloaded").length;
    await writeFile(join(folder, "watched.log"), "a line");
    await new Promise((settle) => setTimeout(settle, 1000));
    expect(watched.stderr().split("reloaded").length).toBe(loadings);
    await writeFile(path, `export default (`);
    await expect.poll(() => watched.stderr()).toContain("The previous version stays in use");
    expect(await say()).toBe("two");
  } finally {
    await watched.stop();
  }
});

function post(model: string, stream: boolean): RequestInit {
  const body = JSON.stringify({ model, stream, messages: [{ role: "user", content: "hello" }] });
  return { method: "POST", headers: { "content-type": "application/json" }, body };
}
