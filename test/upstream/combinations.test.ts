import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { Engine } from "../../src/wire/core/engine.ts";
import type { ModelEntry } from "../../src/serve/config/model-schema.ts";
import { newest } from "../inspect/support.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { ask, startGateway } from "./gateway.ts";
import { event, role, say, startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";
import { until } from "../support/scripted-engine.ts";

/* Features of upstreams that were written apart, on one request. */

type Script = Parameters<typeof startScripted>[0];

async function upstream(script: Script): Promise<ScriptedServer> {
  const server = await startScripted(script);
  closeAfterTest(() => server.close());
  return server;
}

async function gateway(...args: Parameters<typeof startGateway>): Promise<TruewireServer> {
  const server = await startGateway(...args);
  closeAfterTest(() => server.close(0));
  return server;
}

async function serve(models: readonly ModelEntry[], more: object = {}): Promise<TruewireServer> {
  const server = await createServer({ port: 0, logLevel: "silent", models, ...more });
  closeAfterTest(() => server.close(0));
  return server;
}

const refuse = (response: ServerResponse, message: string, status = 400): void =>
  void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error: { message } }));

const choicesIn = (text: string): number => (JSON.parse(text) as { choices: unknown[] }).choices.length;

// The request that a refusal had taught went to the next URL, which knew nothing of it: its body was the refused one, and the client got
// the refusal.
test("with several URLs, a request that was refused is sent again to the URL that has refused it", async () => {
  const strict: Script = (response, body) =>
    "store" in body ? refuse(response, "Unknown parameter: 'store'.") : say(response, body, "Hi");
  const servers = [await upstream(strict), await upstream(strict)];
  const server = await gateway(servers.map(({ url }) => url));
  for (let at = 0; at < 4; at++) expect((await ask(server, { store: false })).status).toBe(200);
  expect(servers.map(({ requests }) => requests.filter(({ body }) => "store" in body).length)).toEqual([1, 1]);
});

// The second refusal taught nothing, because the first one had taught it a moment before, and its client got the refusal.
test("concurrent requests learn from refusals of the same kind", async () => {
  const waiting: ServerResponse[] = [];
  const source = await upstream((response, body) => {
    if ("store" in body) waiting.push(response);
    else say(response, body, "Hi");
  });
  const server = await gateway(source.url);
  const asked = [ask(server, { store: false }), ask(server, { store: false })];
  await until(() => waiting.length === 2, "both requests have come");
  const [first, second] = waiting.splice(0);
  if (!first || !second) throw new Error("a request is missing");
  refuse(first, "Unknown parameter: 'store'.");
  await Promise.race(asked);
  refuse(second, "Unknown parameter: 'store'.");
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200]);
});

// Only the profile of the first URL was looked at.
test("n becomes several requests after the refusal of any URL", async () => {
  const strict: Script = (response, body) =>
    Number(body["n"]) > 1 ? refuse(response, "'n' : number must be at most 1") : say(response, body, "Hi");
  const servers = [await upstream(strict), await upstream(strict)];
  const server = await gateway(servers.map(({ url }) => url));
  await ask(server);
  const { status, text } = await ask(server, { n: 2 });
  expect(status).toBe(200);
  expect(choicesIn(text)).toBe(2);
});

// A request with more choices than the queue is long was always refused, with 429.
test("a request of several choices is not refused because of its own choices", async () => {
  const source = await upstream((response, body) => say(response, body, "Hi"));
  const server = await gateway(source.url, { singleChoice: true, concurrency: 1, queueLimit: 2 });
  const { status, text } = await ask(server, { n: 5 });
  expect(status).toBe(200);
  expect(choicesIn(text)).toBe(5);
  expect(source.requests).toHaveLength(5);
});

test("with strict, several choices are not made of several requests", async () => {
  const source = await upstream((response, body) => say(response, body, "Hi"));
  const server = await gateway(source.url, { strict: true, requests: { severalChoices: false } });
  const { status, text } = await ask(server, { n: 2 });
  expect(status).toBe(400);
  expect(text).toContain("strict: true");
  expect(source.requests).toHaveLength(0);
  expect((await ask(server, { n: 1 })).status).toBe(200);
});

// The second choice was compared with the first one, which had been sent a moment before.
test("the choices of one request do not miss each other's cache", async () => {
  const source = await upstream((response) => {
    const choices = [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }];
    const usage = { prompt_tokens: 6000, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 0 } };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: "a", object: "chat.completion", created: 1, model: "m", choices, usage }));
  });
  const server = await gateway(source.url, { singleChoice: true });
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-truewire-cache": "explain" },
    body: JSON.stringify({ model: "m", n: 3, messages: [{ role: "user", content: "word ".repeat(5000) }] }),
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-truewire-cache-miss")).toBeNull();
});

const local: Engine = {
  models: () => [{ id: "local", created: 0, ownedBy: "test", endpoints: ["chat"] }],
  async *generate() {
    yield [{ type: "start", choice: 0 }];
    yield [{ type: "text-delta", choice: 0, text: "from local" }];
    yield [
      { type: "finish", choice: 0, reason: "stop" },
      { type: "end", end: { kind: "done" } },
    ];
  },
  health: () => ({ state: "ready" }),
  close: () => Promise.resolve(),
};

// The events of the fallback were left out, and those of the answer that nobody got were shown.
test.each([true, false])(
  "Inspect shows the events of the fallback, not of the answer before (stream %s)",
  async (stream) => {
    const filtered = await upstream((response) => {
      if (stream) return response.end(`${role}${event({}, "content_filter")}data: [DONE]\n\n`);
      const choices = [{ index: 0, message: { role: "assistant", content: null }, finish_reason: "content_filter" }];
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ id: "a", object: "chat.completion", created: 1, model: "m", choices }));
    });
    const server = await serve([
      {
        kind: "upstream",
        url: filtered.url,
        name: "up",
        models: { m: "m" },
        fallbacks: ["local"],
        fallbackOn: ["content-filter"],
      },
      { kind: "engine", engine: local },
    ]);
    expect((await ask(server, { stream })).text).toContain("from local");
    const events = (await newest(server.url)).events.chunks.flatMap((chunk) => chunk.events);
    expect(events).toContainEqual({ type: "text-delta", choice: 0, text: "from local" });
    expect(events.filter(({ type }) => type === "finish")).toEqual([{ type: "finish", choice: 0, reason: "stop" }]);
    expect(events.filter(({ type }) => type === "end")).toHaveLength(1);
  },
);
