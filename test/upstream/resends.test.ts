import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { createServer } from "../../src/app/create-server.ts";
import { keyOf } from "../keys/support.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { done, event, finish, role, say, startScripted } from "./scripted-server.ts";
import { until } from "../support/scripted-engine.ts";

// Claude Code and Codex leave a request that has no answer for 300 s, and send it again. Each time, the upstream began to process the prompt
// from its start: a prompt that takes longer than 300 s was never answered.

/** An upstream that answers when the test says so. */
async function slowUpstream() {
  const waiting: { response: ServerResponse; body: Record<string, unknown>; aborted: boolean }[] = [];
  const source = await startScripted((response, body) => {
    const entry = { response, body, aborted: false };
    response.on("close", () => (entry.aborted = !response.writableFinished));
    waiting.push(entry);
  });
  closeAfterTest(() => source.close());
  return { source, waiting };
}

async function serve(url: string, more: object = { attachResends: "60s" }) {
  const models = [{ kind: "upstream" as const, url, name: "up", models: { m: "m" } }];
  const server = await createServer({ port: 0, logLevel: "silent", models, hold: "60s", ...more });
  closeAfterTest(() => server.close(0));
  return server;
}

interface Asking {
  readonly path?: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

const paths = {
  "chat/completions": { messages: [{ role: "user", content: "Hi" }] },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 5 },
  responses: { input: "Hi" },
} as const;

function ask({ url }: { url: string }, { path = "chat/completions", body = {}, headers = {}, signal }: Asking = {}) {
  return fetch(`${url}/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "m", stream: true, ...paths[path as keyof typeof paths], ...body }),
    ...(signal && { signal }),
  });
}

/** Resolves when the server has as many open requests. */
async function untilOpen({ url }: { url: string }, count: number): Promise<void> {
  await until(async () => {
    const text = await (await fetch(`${url}/health`)).text();
    // The request for the health is open, too.
    return Number(/"open":(\d+)/.exec(text)?.[1]) - 1 === count;
  }, `${count} requests are open`);
}

/** Sends a request and leaves when the upstream has it. Resolves when the server knows that the client has left. */
async function askAndLeave(server: { url: string }, arrived: () => boolean, asking: Asking = {}): Promise<void> {
  const leaving = new AbortController();
  const asked = ask(server, { ...asking, signal: leaving.signal });
  asked.catch(() => {});
  await until(arrived, "the upstream has the request");
  await untilOpen(server, 1);
  leaving.abort();
  await asked.catch(() => {});
  await untilOpen(server, 0);
}

describe.each(Object.keys(paths))("%s", (path) => {
  test("a storm of the same request is one request to the upstream, and the last client gets the answer", async () => {
    const { source, waiting } = await slowUpstream();
    const server = await serve(source.url);
    for (let at = 0; at < 3; at++) await askAndLeave(server, () => waiting.length > 0, { path });
    const asked = ask(server, { path });
    const [first] = waiting;
    if (!first) throw new Error("no request came");
    say(first.response, first.body, "The whole answer.");
    const answer = await asked;
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain("The whole answer.");
    expect(waiting).toHaveLength(1);
    expect(first.aborted).toBe(false);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    // A client may leave before its request is attached; the last one does not leave.
    expect(metrics).toMatch(/^truewire_attached_requests_total\{gen_ai_request_model="m"\} [123]$/m);
  });
});

test("an attached client gets the text that the first one already had, and ids of its own", async () => {
  const { source, waiting } = await slowUpstream();
  const server = await serve(source.url);
  const leaving = new AbortController();
  const first = ask(server, { signal: leaving.signal });
  await until(() => waiting.length === 1, "the request has come");
  waiting[0]?.response.writeHead(200, { "content-type": "text/event-stream" });
  waiting[0]?.response.write(role + event({ content: "Once " }));
  const reader = (await first).body?.getReader();
  const start = new TextDecoder().decode((await reader?.read())?.value);
  leaving.abort();
  await untilOpen(server, 0);
  const second = ask(server);
  waiting[0]?.response.end(event({ content: "upon a time" }) + finish + done);
  const text = await (await second).text();
  const contents = [...text.matchAll(/"content":"([^"]+)"/g)].map(([, content]) => content);
  expect(contents.join("")).toBe("Once upon a time");
  expect(text).toContain("[DONE]");
  expect(waiting).toHaveLength(1);
  expect(start).toContain("chatcmpl");
});

test("while the first client waits, only a request that must get the same answer, or says that it is a retry, is attached", async () => {
  const { source, waiting } = await slowUpstream();
  const server = await serve(source.url);
  const retry = { "x-stainless-retry-count": "1" };
  const asked = [ask(server)];
  await until(() => waiting.length === 1, "the first has come");
  // Two answers may be wanted, to choose one.
  asked.push(ask(server));
  await until(() => waiting.length === 2, "a second sample is generated");
  asked.push(ask(server, { headers: retry }));
  const exact = { body: { temperature: 0 } };
  const leaving = new AbortController();
  const left = ask(server, { ...exact, signal: leaving.signal });
  left.catch(() => {});
  await until(() => waiting.length === 3, "a request of its own has come");
  asked.push(ask(server, exact));
  // The attached one must have come before the first one leaves: its answer to a request of another body shows it.
  const other = ask(server, { body: { temperature: 0, seed: 2 } });
  await until(() => waiting.length === 4, "another body is another request");
  asked.push(other);
  leaving.abort();
  await left.catch(() => {});
  for (const { response, body } of waiting)
    say(response, body, `Answer ${waiting.findIndex((one) => one.body === body)}.`);
  const texts = await Promise.all(asked.map(async (answer) => /Answer \d/.exec(await (await answer).text())?.[0]));
  expect(texts).toEqual(["Answer 0", "Answer 1", "Answer 1", "Answer 2", "Answer 3"]);
  expect(waiting.map(({ aborted }) => aborted)).toEqual([false, false, false, false]);
});

test("another key, another body and another form are other requests", async () => {
  const { source, waiting } = await slowUpstream();
  const [ann, bob] = [keyOf("ann"), keyOf("bob")];
  const server = await serve(source.url, { attachResends: "60s", keys: [ann.entry, bob.entry] });
  const as = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });
  await askAndLeave(server, () => waiting.length === 1, { headers: as(ann.key) });
  await askAndLeave(server, () => waiting.length === 2, { headers: as(bob.key) });
  await askAndLeave(server, () => waiting.length === 3, { headers: as(ann.key), body: { user: "x" } });
  await askAndLeave(server, () => waiting.length === 4, { headers: as(ann.key), body: { stream: false } });
  await askAndLeave(server, () => waiting.length === 5, { headers: { ...as(ann.key), "x-truewire-wire": "exact" } });
  expect(waiting).toHaveLength(5);
});

// The server waited for its whole grace period for an answer that no client wanted.
test("a server that closes does not wait for generations without a client", async () => {
  const { source, waiting } = await slowUpstream();
  const server = await serve(source.url);
  await askAndLeave(server, () => waiting.length === 1);
  await server.close(600_000);
  await until(() => waiting[0]?.aborted === true, "the upstream's request is cancelled");
});

test("without a further request the generation is cancelled after the time, and at once by default", async () => {
  for (const more of [{ attachResends: "50ms" }, {}]) {
    const { source, waiting } = await slowUpstream();
    const server = await serve(source.url, more);
    await askAndLeave(server, () => waiting.length === 1);
    await until(() => source.open() === 0, "the upstream's request is cancelled");
    expect(waiting[0]?.aborted).toBe(true);
  }
});
