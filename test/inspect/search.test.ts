import { afterAll, beforeAll, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { SearchEnd, SearchHit, SearchResult } from "../../src/judge/inspect/inspected-request.ts";
import { ScriptedEngine } from "../support/scripted-engine.ts";
import { chat, json } from "../support/transports.ts";
import { listed } from "./support.ts";

const secret = "secret-of-the-configuration";

/** Says the last message backwards in parts, after some reasoning. */
const engine = new ScriptedEngine(({ prompt }) => {
  const last = prompt.kind === "chat" ? String(prompt.messages.at(-1)?.content) : "";
  const deltas = [...last].reverse().map((text): GenerationEvent => ({ type: "text-delta", choice: 0, text }));
  return [
    [
      { type: "start", choice: 0 },
      { type: "reasoning-delta", choice: 0, text: "Let me tu" },
      { type: "reasoning-delta", choice: 0, text: "rn it round." },
      ...deltas,
      { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "look_up" },
      { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"city":"Li' },
      { type: "tool-call-delta", choice: 0, index: 0, arguments: 'sboa"}' },
      { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
      { type: "finish", choice: 0, reason: "stop" },
    ],
    [{ type: "end", end: { kind: "done" } }],
  ];
});

let server: TruewireServer;
beforeAll(async () => {
  server = await createServer({
    port: 0,
    logLevel: "silent",
    adminKey: secret,
    inspect: true,
    models: [{ kind: "engine", engine }],
  });
  await post(json({ model: "scripted", messages: [{ role: "user", content: 'Olá "World", a line\nand another' }] }));
  await post(chat("The second one", { model: "scripted", stream: true }));
  await post(chat("The third one", { model: "nowhere" }));
});
afterAll(() => server.close(0));

const withKey = { headers: { authorization: `Bearer ${secret}` } };

async function post(init: RequestInit): Promise<void> {
  await (await fetch(`${server.url}/v1/chat/completions`, init)).text();
}

async function events(query: string): Promise<readonly (SearchResult | SearchEnd)[]> {
  const response = await fetch(`${server.url}/admin/requests/search${query}`, withKey);
  expect(response.status).toBe(200);
  const text = await response.text();
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data) as SearchResult | SearchEnd);
}

/** The numbers of the requests that are found, the newest first. */
async function numbers(q: string, filters = ""): Promise<(number | undefined)[]> {
  const results = (await events(`?q=${encodeURIComponent(q)}${filters}`)).filter((one) => "id" in one);
  const { requests } = await listed(server.url, "", withKey);
  return results.map(({ id }) => requests.find((request) => request.id === id)?.number);
}

/** Where a query is found, with the marked words in brackets. */
async function hits(q: string): Promise<string[]> {
  const [result] = await events(`?q=${encodeURIComponent(q)}`);
  return result && "hits" in result ? result.hits.map((hit) => `${hit.place}: ${marked(hit)}`) : [];
}

function marked({ text, marks }: SearchHit): string {
  let [shown, at] = ["", 0];
  for (const [start, end] of marks) {
    shown += `${text.slice(at, start)}[${text.slice(start, end)}]`;
    at = end;
  }
  return shown + text.slice(at);
}

test("requests, answers, reasoning, tool calls and errors are searched, the newest first", async () => {
  expect(await numbers("one")).toEqual([3, 2]);
  expect(await numbers("ENO DNOCES")).toEqual([2]);
  expect(await numbers("turn it round")).toEqual([2, 1]);
  expect(await numbers("lisboa look_up")).toEqual([2, 1]);
  expect(await numbers("does not exist")).toEqual([3]);
  expect(await numbers("one lisboa")).toEqual([2]);
  expect(await numbers('"one lisboa"')).toEqual([]);
  expect(await numbers("one", "&status=404")).toEqual([3]);
  expect(await events("?q=one")).toContainEqual({ searched: 3, found: 2 });
});

// A search in the bytes finds no word that JSON escapes, and none that a stream sends in parts.
test("texts are searched as people read them, and results show the words in context", async () => {
  expect(await hits('"Olá \\"World"')).toEqual([]);
  expect(await hits('olá world "line and"')).toEqual([]);
  expect(await hits("olá world")).toEqual([
    expect.stringMatching(/^request: .*"[[]Olá[\]] "[[]World[\]]", a line and another/),
  ]);
  expect((await hits("second"))[0]).toMatch(/^request: .*The \[second\] one/);
  expect(await hits("dnoces")).toEqual(["answer: eno [dnoces] ehT"]);
  expect(await hits("city lisboa")).toEqual(['tool call: look_up {"[city]":"[Lisboa]"}']);
});

test("words are literal: characters of regular expressions have no meaning", async () => {
  expect(await numbers("s.c")).toEqual([]);
  expect(await numbers("(o|O)ne")).toEqual([]);
  expect(await numbers("[")).toEqual([3, 2, 1]);
  expect(await numbers("\\u00e1")).toEqual([]);
});

test("an empty query, a long one and unknown filters are refused", async () => {
  for (const query of [
    "",
    "?q=",
    "?q=%20",
    `?q=${"x".repeat(201)}`,
    "?q=x&modle=y",
    "?q=x&min_ms=soon",
    "?q=x&repaired=1",
  ]) {
    const response = await fetch(`${server.url}/admin/requests/search${query}`, withKey);
    expect([response.status, await response.text()], query).toEqual([400, expect.stringContaining("message")]);
  }
});

test("a secret of the configuration is neither found nor shown", async () => {
  await post(chat(`It is ${secret}.`, { model: "scripted" }));
  expect(await numbers(secret)).toEqual([]);
  expect((await hits("it is"))[0]).toMatch(/\[It\] \[is\] \[key\]\./);
});

test("clear drops what is kept, and what was open is not listed again", async () => {
  const live = await fetch(`${server.url}/admin/requests/live`, withKey);
  const reader = live.body?.getReader() ?? expect.fail("no body");
  const count = (await listed(server.url, "", withKey)).requests.length;
  expect(count).toBeGreaterThan(2);
  const refused = await fetch(`${server.url}/admin/requests`, { method: "DELETE" });
  expect(refused.status).toBe(401);
  const foreign = { ...withKey.headers, "sec-fetch-site": "cross-site" };
  expect((await fetch(`${server.url}/admin/requests`, { method: "DELETE", headers: foreign })).status).toBe(403);
  const cleared = await fetch(`${server.url}/admin/requests`, { method: "DELETE", ...withKey });
  expect(await cleared.json()).toEqual({ cleared: count });
  expect(await listed(server.url, "", withKey)).toMatchObject({ requests: [], bytes: 0, dropped: 0 });
  let text = "";
  const decoder = new TextDecoder();
  while (!text.includes("cleared")) text += decoder.decode((await reader.read()).value, { stream: true });
  expect(text).toContain(`data: {"cleared":${count}}\n\n`);
  await reader.cancel();
  await post(chat("A new one", { model: "scripted" }));
  expect((await listed(server.url, "", withKey)).requests).toHaveLength(1);
});
