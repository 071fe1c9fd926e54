import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { keyOf, withKey } from "../keys/support.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { until } from "../support/scripted-engine.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { json } from "../support/transports.ts";
import { readExposition, total } from "./read-metrics.ts";

/** What `x-truewire-cache-miss` says. */
interface Miss {
  readonly cause: string;
  readonly where?: string;
  readonly says: string;
  readonly at: number;
  readonly cachedTokens: number;
  readonly promptTokens: number;
  readonly knownTokens?: number;
  readonly before?: string;
  readonly known?: string;
  readonly asked?: string;
}

interface Asked {
  readonly miss: Miss | null;
  readonly header: string | null;
  readonly text: string;
  readonly id: string;
}

const rules = Array.from({ length: 12 }, (_, at) => `Rule ${at}: read a file before you edit it.`).join(" ");

/** Asks and reads the answer to its end. */
async function ask(url: string, path: string, body: object, init: RequestInit = {}): Promise<Asked> {
  const explain = { "x-truewire-cache": "explain", ...(init.headers as Record<string, string>) };
  const { headers, ...request } = json({ model: "local", max_tokens: 200, ...body });
  const response = await fetch(`${url}${path}`, { ...request, headers: { ...(headers as object), ...explain } });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const header = response.headers.get("x-truewire-cache-miss");
  return {
    miss: header === null ? null : (JSON.parse(header) as Miss),
    header,
    text,
    id: response.headers.get("x-request-id") ?? "",
  };
}

interface Line {
  readonly req?: string;
  readonly cache?: Readonly<Record<string, unknown>>;
}

function linesOf(server: RunningTruewire): Line[] {
  return server
    .stderr()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Line);
}

const folder = mkdtempSync(join(tmpdir(), "truewire-misses-"));
const closing: (() => Promise<unknown>)[] = [];
beforeAll(() => {
  writeProgrammedModel(join(folder, "local.gguf"), { contextLength: 8192 });
});
afterAll(async () => {
  for (const close of closing) await close();
  rmSync(folder, { recursive: true, force: true });
});

let configurations = 0;

async function serve(slots: number, more: object = {}): Promise<RunningTruewire> {
  const file = join(folder, `truewire-${++configurations}.yaml`);
  const local = { kind: "local", path: "local.gguf", slots, threads: 1, gpu: "off", cacheMemory: 0 };
  writeFileSync(file, stringify({ port: 0, logFormat: "json", models: [local], ...more }));
  const server = await startTruewire(["--config", file]);
  closing.push(() => server.stop());
  return server;
}

const chatPath = "/v1/chat/completions";
const user = (content: string): object => ({ role: "user", content });
const system = (content: string): object => ({ role: "system", content });
const says = (content: string): object => ({ role: "assistant", content });
const greeting = "Hello! I am a programmed model, and every word of mine was written beforehand.";
const tool = (name: string, description = `Tells the ${name} of a town.`): object => ({
  type: "function",
  function: { name, description, parameters: { type: "object", properties: { town: { type: "string" } } } },
});

describe("why a local model reads a prompt again", () => {
  let server: RunningTruewire;
  beforeAll(async () => {
    server = await serve(1);
  });
  const chat = (messages: readonly object[], more: object = {}): Promise<Asked> =>
    ask(server.url, chatPath, { messages, ...more });
  const first = "What is the capital of France, and how many people live there?";
  const turns = [user(first), says(greeting), user("And of Spain?")];
  const cause = ({ miss }: Asked): unknown => miss && [miss.cause, miss.where];

  test("a date in the system prompt: the header has the place, the cause, what helps and both texts", async () => {
    const dated = (date: string): object => system(`It is ${date}. ${rules}`);
    expect(cause(await chat([dated("2026-11-22"), ...turns.slice(0, 1)]))).toEqual(["nothing-known", undefined]);
    // The next turn goes on where the last one ended.
    expect((await chat([dated("2026-11-22"), ...turns])).header).toBeNull();
    const { miss, header, id } = await chat([dated("2026-11-23"), ...turns]);
    const before = "<|im_start|>system\nIt is 2026-11-2";
    // Control tokens are one token each, and every byte of text is one.
    const at = before.length - "<|im_start|>".length + 1;
    expect(miss).toEqual({
      cause: "date",
      where: "messages[0]",
      says: "A date or time changed in messages[0]. Put what changes after what stays the same.",
      at,
      cachedTokens: at,
      promptTokens: expect.any(Number) as number,
      before,
      known: `2. ${rules}`.slice(0, 80),
      asked: `3. ${rules}`.slice(0, 80),
    });
    expect(header).toMatch(/^[ -~]+$/);
    // The log has the place and the cause, and no word of the prompt.
    await until(() => linesOf(server).some(({ req }) => req === id), "it is logged");
    expect(linesOf(server).find(({ req }) => req === id)?.cache).toEqual({ cause: "date", where: "messages[0]", at });
    expect(server.stderr()).not.toContain("Rule");
  });

  test("only where it is asked for, in a stream, too", async () => {
    const streamed = await ask(server.url, chatPath, { messages: [system(`A. ${rules}`), ...turns], stream: true });
    const again = await ask(server.url, chatPath, { messages: [system(`B. ${rules}`), ...turns], stream: true });
    expect(cause(again)).toEqual(["system-changed", "messages[0]"]);
    expect(streamed.text).toContain("data: [DONE]");
    const silent = await ask(
      server.url,
      chatPath,
      { messages: [system(`C. ${rules}`), ...turns] },
      { headers: { "x-truewire-cache": "" } },
    );
    expect(silent.header).toBeNull();
  });

  test("tools in another order, one more, one fewer, another description", async () => {
    const [weather, time, traffic] = [tool("weather"), tool("time"), tool("traffic")];
    const messages = [system(rules), ...turns];
    await chat(messages, { tools: [weather, time, traffic] });
    expect(cause(await chat(messages, { tools: [time, weather, traffic] }))).toEqual(["tools-reordered", "tools[0]"]);
    expect(cause(await chat(messages, { tools: [time, weather, traffic, tool("air")] }))).toEqual([
      "tool-added",
      "tools[3]",
    ]);
    expect(cause(await chat(messages, { tools: [time, weather, traffic] }))).toEqual(["evicted", undefined]);
    expect(cause(await chat(messages, { tools: [time, tool("weather", "Tells it."), traffic] }))).toEqual([
      "tool-changed",
      "tools[1]",
    ]);
    expect(cause(await chat(messages, { tools: [tool("weather", "Tells it."), traffic] }))).toEqual([
      "tool-removed",
      "tools",
    ]);
  });

  test("messages that changed, went, or came between; the answer that came back otherwise", async () => {
    const base = [user(`One. ${rules}`), says("First."), user(`Two. ${rules}`), says("Second."), user("Three?")];
    const next = [...base, says(greeting), user("Four?")];
    await chat([...base.slice(0, -1), user("#endless")], { max_tokens: 40 });
    expect(
      cause(await chat([...base.slice(0, -1), user("#endless"), says(`Well. ${greeting}`), user("Four?")])),
    ).toEqual(["answer-changed", "messages[5]"]);
    await chat(next);
    const changed = next.map((message, at) => (at === 1 ? says("Left out.") : message));
    expect(cause(await chat(changed))).toEqual(["message-changed", "messages[1]"]);
    expect(cause(await chat([...changed.slice(2), says(greeting), user("Five?")]))).toEqual([
      "messages-dropped",
      "messages[0]",
    ]);
    expect(cause(await chat([user("Mind the time."), ...changed.slice(2), says(greeting), user("Five?")]))).toEqual([
      "message-inserted",
      "messages[0]",
    ]);
  });

  test("another system prompt", async () => {
    await chat([system(rules), ...turns]);
    expect(cause(await chat([system("Speak like a pirate at all times, and be loud!"), ...turns]))).toEqual([
      "system-replaced",
      "messages[0]",
    ]);
  });

  test("its slot was taken by another request", async () => {
    const mine = [system(`Mine. ${rules}`), ...turns];
    await chat(mine);
    await chat([system("Write a title."), user("Something else.")]);
    const { miss } = await chat(mine);
    expect(miss).toMatchObject({ cause: "evicted", promptTokens: expect.any(Number) as number });
    expect(miss?.knownTokens).toBeGreaterThan(rules.length);
    expect(miss).not.toHaveProperty("known");
  });

  test("a billing header, as Claude Code writes it: none where it is a block of its own, a cause where it is not", async () => {
    const asked = (header: string, asBlock: boolean): Promise<Asked> =>
      ask(server.url, "/v1/messages", {
        system: asBlock
          ? [
              { type: "text", text: header },
              { type: "text", text: "You are a Claude agent, built on Anthropic's Claude Agent SDK." },
              { type: "text", text: rules, cache_control: { type: "ephemeral" } },
            ]
          : `${header}\n${rules}`,
        messages: [user("run echo hi")],
      });
    const header = (cch: string): string =>
      `x-anthropic-billing-header: cc_version=2.1.330.930; cc_entrypoint=sdk-cli; cch=${cch};`;
    await asked(header("0a1b2"), true);
    expect((await asked(header("9f8e7"), true)).header).toBeNull();
    await asked(header("0a1b2"), false);
    const { miss } = await asked(header("9f8e7"), false);
    expect(miss).toMatchObject({ cause: "billing-header", where: "system" });
    expect(miss?.before).toMatch(/cch=$/);
  });

  test("text that is not ASCII is whole, on both sides", async () => {
    const asked = (word: string): Promise<Asked> => chat([system(`Grüße aus Zürich: ${word} 😀 ${rules}`), ...turns]);
    await asked("日本");
    const { miss } = await asked("日曜");
    expect(miss?.before).toMatch(/Grüße aus Zürich: 日$/);
    expect(miss?.known).toMatch(/^本 😀 Rule/);
    expect(miss?.asked).toMatch(/^曜 😀 Rule/);
  });

  test("a prompt that is no conversation", async () => {
    const complete = (prompt: string): Promise<Asked> => ask(server.url, "/v1/completions", { prompt });
    await complete(`It is 11:59. ${rules}`);
    expect(cause(await complete(`It is 12:01. ${rules}`))).toEqual(["date", "prompt"]);
  });

  test("each is counted", async () => {
    const numbers = readExposition(await (await fetch(`${server.url}/metrics`)).text());
    const count = (cause: string): number =>
      total(numbers, "truewire_cache_misses_total", { gen_ai_request_model: "local", cause });
    for (const cause of ["date", "tools-reordered", "billing-header", "evicted"])
      expect(count(cause), cause).toBeGreaterThan(0);
  });
});

// Slots are shared between keys, so what a slot knew may be another client's.
describe("on a server with keys", () => {
  const [ann, bob] = [keyOf("ann"), keyOf("bob")];
  let server: RunningTruewire;
  beforeAll(async () => {
    server = await serve(2, { keys: [ann.entry, bob.entry] });
  });
  const secret = "The vault opens with swordfish.";
  const chat = (key: string, start: string): Promise<Asked> =>
    ask(
      server.url,
      chatPath,
      { messages: [system(`${start} ${secret} ${rules}`), user("Hi")] },
      { headers: withKey(key).headers as Record<string, string> },
    );

  test("a client learns of its own prompts, and nothing of another's", async () => {
    await chat(ann.key, "It is 2026-11-22.");
    const other = await chat(bob.key, "It is 2026-11-23.");
    expect(other.miss).toMatchObject({ cause: "nothing-known" });
    expect(Object.keys(other.miss ?? {})).toEqual(["cause", "says", "at", "promptTokens", "cachedTokens"]);
    const own = await chat(ann.key, "It is 2026-11-24.");
    expect(own.miss).toMatchObject({ cause: "date", where: "messages[0]" });
    expect(own.miss?.known).toContain("2. The vault");
    const others = await chat(bob.key, "It is 2026-11-25.");
    // Bob's own earlier prompt is what he is told of, though Ann's is as near.
    expect(others.miss?.known).toMatch(/^3\. The vault/);
  });
});
