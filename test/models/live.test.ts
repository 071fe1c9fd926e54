import { request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import type { EngineHealth } from "../../src/wire/core/engine.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { startHub } from "../support/hub-double.ts";
import type { HubDouble } from "../support/hub-double.ts";
import { runTruewire } from "../support/serve.ts";
import { answer, ScriptedEngine, sleep, until } from "../support/scripted-engine.ts";
import { startScripted } from "../upstream/scripted-server.ts";
import { admin, ask, serveModels, small, taskEvents, watchStates } from "./support.ts";
import type { ErrorBody, TestServer } from "./support.ts";

let folder: string;
let hub: HubDouble;
let server: TestServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "truewire-live-"));
  hub = await startHub(folder);
  const models = [
    `{ kind: local, path: a.gguf, load: lazy, aliases: [first], fallbacks: [b], ${small} }`,
    `{ kind: local, path: b.gguf, load: lazy, ${small} }`,
    `{ kind: local, path: "hf:somebody/tiny:Q4_K_M", name: tiny, load: lazy, modelsFolder: "${folder}/models", ${small} }`,
  ];
  // About 160 MiB each: memory for one at a time.
  server = await serveModels(models, ["memory: 200MiB"], { env: { HF_ENDPOINT: hub.endpoint } });
});
afterAll(async () => {
  await server.end();
  hub.close();
  rmSync(folder, { recursive: true, force: true });
});

function task(path: string, body: object): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return fetch(`${server.url}/admin/models/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

test("a snapshot, then changes: a load, a request in its slot, an unload that waits for it", async () => {
  const client = await watchStates(server.url);
  closeAfterTest(() => client.close());
  expect(client.states()).toMatchObject({ memory: { limit: 200 * 2 ** 20, used: 0 }, pulls: [] });
  expect(client.model("a")).toMatchObject({
    kind: "local",
    models: ["a"],
    aliases: ["first"],
    fallbacks: { models: ["b"] },
    state: "unloaded",
    load: "lazy",
    keep: false,
    busy: 0,
    queued: 0,
  });
  await taskEvents(await admin(server.url, "models/load", "a"));
  await until(() => client.model("a")?.state === "ready", "the load is reported");
  expect(client.states()?.memory.used).toBe(client.model("a")?.memory);
  expect(client.model("a")?.context_length).toBe(60_000);

  const leaving = new AbortController();
  const answered = await ask(server.url, "a", "endless", { stream: true }, leaving.signal);
  const reader = answered.body?.getReader();
  await reader?.read();
  const busySlot = (): Readonly<Record<string, unknown>> | undefined =>
    client.model("a")?.slots?.each?.find(({ state }) => state === "generating") as never;
  await until(() => busySlot()?.["tokens_per_second"] !== undefined, "a slot generates, at a rate");
  expect(client.model("a")).toMatchObject({ busy: 1, slots: { busy: 1, total: 2 } });
  const slot = busySlot();
  expect(slot?.["prompt_tokens"]).toBeGreaterThan(0);
  expect(slot?.["processed_tokens"]).toBe(slot?.["prompt_tokens"]);
  expect(slot?.["context_used"]).toBe(Number(slot?.["prompt_tokens"]) + Number(slot?.["generated_tokens"]));
  const before = Number(slot?.["generated_tokens"]);
  await until(() => Number(busySlot()?.["generated_tokens"]) > before, "its tokens are counted on");

  const unloading = admin(server.url, "models/unload", "a");
  await until(() => client.model("a")?.leaving === true, "it leaves when its answer has ended");
  leaving.abort();
  await taskEvents(await unloading);
  await until(() => client.model("a")?.state === "unloaded", "the unload is reported");
  expect(client.model("a")).not.toHaveProperty("slots");
  expect(client.model("a")).not.toHaveProperty("leaving");
  await until(() => client.states()?.memory.used === 0, "its memory is reported free");
  // One snapshot; every change names only what has changed.
  expect(client.events.filter(({ type }) => type === "snapshot")).toHaveLength(1);
  expect(client.events.slice(1).every((event) => !JSON.stringify(event).includes('"aliases"'))).toBe(true);
});

test("a model that is kept stays when another one needs its memory, until it is released", async () => {
  const client = await watchStates(server.url);
  closeAfterTest(() => client.close());
  await taskEvents(await admin(server.url, "models/load", "a"));
  expect(await taskEvents(await task("keep", { model: "a" }))).toMatchObject([{ type: "done", name: "a", keep: true }]);
  await until(() => client.model("a")?.keep === true, "it is reported as kept");
  const refused = await ask(server.url, "b", "plain");
  expect([refused.status, ((await refused.json()) as ErrorBody).error.code]).toEqual([503, "no_room"]);
  await taskEvents(await task("keep", { model: "first", keep: false }));
  expect((await ask(server.url, "b", "plain")).status).toBe(200);
  await until(() => client.model("a")?.state === "unloaded", "it was unloaded for the other one");
  const wrong = await task("keep", { model: "a", keep: "yes" });
  expect([wrong.status, ((await wrong.json()) as ErrorBody).error.message]).toEqual([
    400,
    "'keep': expected true or false.",
  ]);
  expect((await task("keep", { model: "nobody" })).status).toBe(404);
});

test("downloads in progress, with their rate, for all clients", async () => {
  hub.manner = "slow";
  const client = await watchStates(server.url);
  closeAfterTest(() => client.close());
  const leaving = new AbortController();
  const pulling = fetch(`${server.url}/admin/models/pull`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"model":"tiny"}',
    signal: leaving.signal,
  }).then((response) => response.text());
  await until(() => (client.states()?.pulls[0]?.bytes_per_second ?? 0) > 0, "a download advances");
  expect(client.states()?.pulls).toMatchObject([{ model: "hf:somebody/tiny:Q4_K_M", total_bytes: hub.bytes.length }]);
  leaving.abort();
  await expect(pulling).rejects.toThrow();
  await until(() => client.states()?.pulls.length === 0, "it has ended with its only client");
  hub.manner = "whole";
});

test("the URLs of an upstream: one that fails is ejected, retries are counted, and what failed is shown", async () => {
  const failing = await startScripted((response) => void response.writeHead(500).end("{}"));
  const good = await startScripted((response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] }));
  });
  closeAfterTest(() => Promise.all([failing.close(), good.close()]));
  const url = [failing.url, good.url];
  const own = await createServer({ port: 0, logLevel: "silent", models: [{ kind: "upstream", name: "up", url }] });
  closeAfterTest(() => own.close(0));
  const client = await watchStates(own.url);
  closeAfterTest(() => client.close());
  expect(client.model("up")?.urls).toEqual(
    url.map((each) => ({ url: each, state: "ready", open: 0, retries: 0, ejections: 0 })),
  );
  await until(async () => {
    expect((await ask(own.url, "m", "x")).status).toBe(200);
    return client.model("up")?.urls?.[0]?.state === "ejected";
  }, "the failing URL is out of service");
  const [first, second] = client.model("up")?.urls ?? [];
  expect(first).toMatchObject({ state: "ejected", retries: 3, ejections: 1, failure: expect.any(String) as string });
  expect(second).toMatchObject({ state: "ready", retries: 0, ejections: 0 });
  expect(second).not.toHaveProperty("failure");
});

/** Counts how often it is sampled, and differs each time, by much. */
class RestlessEngine extends ScriptedEngine {
  samples = 0;

  override health(): EngineHealth {
    this.samples++;
    return { ...super.health(), message: `${this.samples} ${"x".repeat(256 * 1024)}` };
  }
}

async function serveRestless(
  more: Partial<TruewireConfig> = {},
): Promise<{ engine: RestlessEngine; own: TruewireServer }> {
  const engine = new RestlessEngine(() => answer(["Hi"]));
  const own = await createServer({ port: 0, logLevel: "silent", models: [{ kind: "engine", engine }], ...more });
  closeAfterTest(() => own.close(0));
  return { engine, own };
}

/** A stream of which nothing is read. */
function unread(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(`${url}/admin/models/live`, { agent: false }, (response) => {
      response.pause();
      closeAfterTest(() => response.destroy());
      resolve(response);
    });
    asked.on("error", reject).end();
  });
}

/** Resolves when a number has been the same for a second, in which a client that reads gets four samples. */
async function settled(count: () => number): Promise<number> {
  let before = -1;
  await until(async () => {
    const isSame = before === count();
    before = count();
    await sleep(1000);
    return isSame && before === count();
  }, "it stays the same");
  return before;
}

test("nothing is sampled without a listener, nor for one that does not read, nor after it has left", async () => {
  const { engine, own } = await serveRestless();
  expect(await settled(() => engine.samples)).toBe(engine.samples);
  const response = await unread(own.url);
  // What the sockets take is sent; each event has 256 KiB.
  const stalled = await settled(() => engine.samples);
  expect(stalled).toBeGreaterThan(0);
  response.destroy();
  const client = await watchStates(own.url);
  const begun = engine.samples;
  await until(() => engine.samples > begun + 4, "a client that reads gets samples");
  client.close();
  await settled(() => engine.samples);
  const { requests } = (await (await fetch(`${own.url}/health`)).json()) as { requests: { open: number } };
  expect(requests.open).toBe(1);
});

test("many listeners share the samples, which come at most four times a second", async () => {
  const { engine, own } = await serveRestless();
  const clients = await Promise.all(Array.from({ length: 20 }, () => watchStates(own.url)));
  const [begun, at] = [engine.samples, performance.now()];
  await until(() => clients.every(({ events }) => events.length > 8), "all get their changes");
  // A sample asks for the health three times: for the state, the slots and the list.
  expect((engine.samples - begun) / 3).toBeLessThanOrEqual((performance.now() - at) / 250 + 2);
  for (const client of clients) client.close();
});

test("a server that stops ends the stream at once, and does not wait for it", async () => {
  const { own } = await serveRestless();
  const client = await watchStates(own.url);
  // This test would end before the grace period does.
  await own.close(300_000);
  await until(() => client.ended(), "the stream has ended");
});

test("the command line: keeps a model, and watches until the server stops", async () => {
  const kept = await runTruewire(["models", "keep", "a", "--url", server.url]);
  expect([kept.code, kept.stdout]).toEqual([0, "a is kept in memory.\n"]);
  const list = await runTruewire(["models", "list", "--url", server.url]);
  expect(list.stdout).toMatch(/^a +unloaded .* lazy, kept +-$/m);
  const off = await runTruewire(["models", "keep", "a", "--off", "--url", server.url]);
  expect(off.stdout).toBe("a is no longer kept.\n");

  const engine = new RestlessEngine(() => answer(["Hi"]));
  const own = await createServer({ port: 0, logLevel: "silent", models: [{ kind: "engine", engine }] });
  const watching = runTruewire(["models", "list", "--watch", "--url", own.url]);
  await until(() => engine.samples > 8, "it watches");
  await own.close(0);
  const watched = await watching;
  expect(watched.code).toBe(1);
  expect(watched.stdout.match(/^scripted +ready/gm)?.length).toBeGreaterThan(1);
  expect(watched.stderr).toContain("The server has ended the connection.");
});

test("rights: the admin key where there is one; closed where the admin API is; no page of another origin", async () => {
  const status = async (url: string, headers: Readonly<Record<string, string>> = {}): Promise<number> => {
    const leaving = new AbortController();
    const response = await fetch(`${url}/admin/models/live`, { headers, signal: leaving.signal });
    leaving.abort();
    return response.status;
  };
  const keyed = await serveRestless({ apiKey: "client-key-12345678", adminKey: ["admin-key-12345678"] });
  expect(await status(keyed.own.url)).toBe(401);
  expect(await status(keyed.own.url, { authorization: "Bearer client-key-12345678" })).toBe(401);
  expect(await status(keyed.own.url, { authorization: "Bearer admin-key-12345678" })).toBe(200);
  const closed = await serveRestless({ apiKey: "client-key-12345678" });
  expect(await status(closed.own.url, { authorization: "Bearer client-key-12345678" })).toBe(403);
  const { own } = await serveRestless();
  expect(await status(own.url, { origin: "https://example.com" })).toBe(403);
  expect(await status(own.url)).toBe(200);
  const head = await fetch(`${own.url}/admin/models/live`, { method: "HEAD" });
  expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
});
