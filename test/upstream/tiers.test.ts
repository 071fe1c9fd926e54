import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { keyOf } from "../keys/support.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { say, startScripted } from "./scripted-server.ts";
import { until } from "../support/scripted-engine.ts";

/** An upstream that answers one request at a time, when `next` is called. */
async function slowUpstream() {
  const waiting: { response: ServerResponse; body: Record<string, unknown> }[] = [];
  const order: string[] = [];
  const source = await startScripted((response, body) => {
    order.push((body["messages"] as { content: string }[])[0]?.content ?? "");
    waiting.push({ response, body });
  });
  closeAfterTest(() => source.close());
  const next = async (): Promise<void> => {
    await until(() => waiting.length > 0, "a request has come");
    expect(waiting).toHaveLength(1);
    const one = waiting.pop();
    if (one) say(one.response, one.body, "Done.");
  };
  return { source, order, next };
}

async function serve(url: string, more: object = {}, keys: readonly object[] = []) {
  const server = await createServer({
    port: 0,
    logLevel: "silent",
    keys: keys as never,
    models: [{ kind: "upstream", url, name: "up", models: { m: "m" }, concurrency: 1, ...more }],
  });
  closeAfterTest(() => server.close(0));
  return server;
}

type Server = Awaited<ReturnType<typeof serve>>;

interface Asking {
  readonly path?: string;
  readonly tier?: string;
  readonly key?: string;
  readonly signal?: AbortSignal;
}

function ask(
  { url }: Server,
  content: string,
  { path = "chat/completions", tier, key, signal }: Asking = {},
): Promise<Response> {
  const input = path === "responses" ? { input: content } : { messages: [{ role: "user", content }] };
  return fetch(`${url}/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(key !== undefined && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify({
      model: "m",
      max_tokens: path === "responses" ? undefined : 5,
      service_tier: tier,
      ...input,
    }),
    ...(signal && { signal }),
  });
}

async function queued({ url }: Server, key?: string): Promise<number> {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const text = await (await fetch(`${url}/health`, { headers })).text();
  return (JSON.parse(text) as { queued: number }).queued;
}

async function untilQueued(server: Server, count: number, key?: string): Promise<void> {
  await until(async () => (await queued(server, key)) === count, `${count} requests wait`);
}

test("with a limit, requests wait in the order of their service_tier, in each API", async () => {
  const { source, order, next } = await slowUpstream();
  const server = await serve(source.url);
  const asked: Promise<Response>[] = [ask(server, "first")];
  await until(() => order.length === 1, "the first one has come");
  const waiting: [string, Asking][] = [
    ["flex", { tier: "flex" }],
    ["flex of Responses", { tier: "flex", path: "responses" }],
    ["no tier", {}],
    ["standard_only", { tier: "standard_only", path: "messages" }],
    ["auto", { tier: "auto" }],
    ["priority", { tier: "priority" }],
    ["fast of Responses", { tier: "fast", path: "responses" }],
  ];
  for (const [at, [content, asking]] of waiting.entries()) {
    asked.push(ask(server, content, asking));
    await untilQueued(server, at + 1);
  }
  for (let at = 0; at < asked.length; at++) await next();
  for (const answer of asked) expect((await answer).status).toBe(200);
  expect(order.slice(1)).toEqual([
    "priority",
    "fast of Responses",
    "no tier",
    "standard_only",
    "auto",
    "flex",
    "flex of Responses",
  ]);
});

// A client could write any tier into its request and pass everybody.
test("a key's priority is the tier of its requests, and the highest that they may ask for", async () => {
  const { source, order, next } = await slowUpstream();
  const [ann, bob, eve] = [keyOf("ann"), keyOf("bob"), keyOf("eve")];
  const server = await serve(source.url, {}, [
    { ...ann.entry, priority: "priority" },
    bob.entry,
    { ...eve.entry, priority: "flex" },
  ]);
  const asked = [ask(server, "first", { key: ann.key })];
  await until(() => order.length === 1, "the first one has come");
  const waiting: [string, Asking][] = [
    ["eve", { key: eve.key, tier: "priority" }],
    ["bob", { key: bob.key, tier: "priority" }],
    ["ann, flex", { key: ann.key, tier: "flex" }],
    ["ann, default", { key: ann.key, tier: "default" }],
    ["ann", { key: ann.key }],
  ];
  for (const [at, [content, asking]] of waiting.entries()) {
    asked.push(ask(server, content, asking));
    await untilQueued(server, at + 1, ann.key);
  }
  for (let at = 0; at < asked.length; at++) await next();
  await Promise.all(asked);
  // Owners take turns within a tier.
  expect(order.slice(1)).toEqual(["ann", "bob", "ann, default", "eve", "ann, flex"]);
});

test("a client that leaves the queue makes room, and a full queue refuses", async () => {
  const { source, order, next } = await slowUpstream();
  const server = await serve(source.url, { queueLimit: 1 });
  const first = ask(server, "first");
  await until(() => order.length === 1, "the first one has come");
  const leaving = new AbortController();
  const second = ask(server, "second", { signal: leaving.signal });
  second.catch(() => {});
  await untilQueued(server, 1);
  const refused = await ask(server, "third");
  expect(refused.status).toBe(429);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await refused.text()).toContain("1 requests are already waiting");
  leaving.abort();
  await untilQueued(server, 0);
  const fourth = ask(server, "fourth");
  await untilQueued(server, 1);
  await next();
  await next();
  expect((await first).status).toBe(200);
  expect((await fourth).status).toBe(200);
  expect(order).toEqual(["first", "fourth"]);
});
