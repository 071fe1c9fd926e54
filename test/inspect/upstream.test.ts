import type { ServerResponse } from "node:http";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { event, finish, role, say, startScripted } from "../upstream/scripted-server.ts";
import { listed, newest, textOf } from "./support.ts";
import { closeAfterTest } from "../support/close-after-test.ts";

type Script = Parameters<typeof startScripted>[0];

/** A gateway in front of a server that answers so, and a client of it. */
async function gateway(script: Script, model: object = {}): Promise<{ url: string; client: OpenAI; upstream: string }> {
  const upstream = await startScripted(script);
  closeAfterTest(upstream.close);
  const entry = { kind: "upstream", name: "u", url: upstream.url, ...model } as const;
  const config: TruewireConfig = { port: 0, logLevel: "silent", models: [entry] };
  const server = await createServer(config);
  closeAfterTest(() => server.close(0));
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  return { url: server.url, client, upstream: upstream.url };
}

async function ask(client: OpenAI, stream = true): Promise<void> {
  const messages = [{ role: "user" as const, content: "Hi" }];
  const answer = await client.chat.completions.create({ model: "m", messages, stream });
  if (Symbol.asyncIterator in answer) for await (const _ of answer);
}

/** Sends the chunks one after the other, each by itself. */
async function send(response: ServerResponse, chunks: readonly string[]): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream", "set-cookie": "session=of-the-upstream" });
  for (const chunk of chunks) {
    response.write(chunk);
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
  response.end();
}

describe("an upstream's answer, beside ours", () => {
  test("its bytes as they came, with each repair at the frame that it was made in", async () => {
    const noSpace = event({ content: "Hello" }).replace("data: ", "data:");
    // Cut within a frame: the place is that of the frame.
    const chunks = [
      role,
      noSpace.slice(0, 20),
      noSpace.slice(20),
      ": ping\n\n",
      event({ content: "!" }),
      event({}, "eos"),
    ];
    const { url, client, upstream } = await gateway((response) => void send(response, chunks));
    await ask(client);
    const request = await newest(url);
    expect(request).toMatchObject({ model: "m", outcome: "finished", attempts: 1 });
    const [asked, ...others] = request.asked;
    expect(others).toEqual([]);
    if (!asked) throw new Error("no other server was asked");
    expect(asked.url).toBe(`${upstream}/chat/completions`);
    expect(JSON.parse(asked.body.text)).toMatchObject({ model: "m", stream: true });
    expect(asked.status).toBe(200);
    expect(asked.response_headers).toContainEqual(["set-cookie", "[key]"]);
    const body = chunks.join("");
    expect(textOf(asked.response)).toBe(body);
    expect(asked.response.chunks.length).toBeGreaterThan(1);
    const placed = asked.repairs.map(({ id, at = -1 }) => [id, body.slice(at).split("\n")[0]]);
    expect(placed).toEqual(
      expect.arrayContaining([
        ["no-space", noSpace.trim()],
        ["comment", ": ping"],
        ["finish-reason", event({}, "eos").trim()],
        ["no-done", ""],
      ]),
    );
    expect(asked.repairs.find(({ id }) => id === "comment")?.sentence).toBe("A comment line was dropped.");
    expect(request.repairs).toMatchObject({ "no-space": 1, comment: 1, "no-done": 1 });
    expect(textOf(request.response.body)).toContain("data: [DONE]");
    expect((await listed(url, "?repair=comment")).requests).toHaveLength(1);
    expect((await listed(url, "?repair=bom")).requests).toEqual([]);
  });

  test("a whole answer, and the body of an error", async () => {
    const { url, client } = await gateway((response, body, attempt) => {
      if (attempt === 1) return say(response, body, "Hi");
      response.writeHead(422, { "content-type": "application/json" });
      response.end('{"error":{"message":"Not like that.","type":"invalid_request_error"}}');
    });
    await ask(client, false);
    const whole = await newest(url);
    expect(textOf(whole.asked[0]?.response ?? { chunks: [] })).toContain('"content":"Hi"');
    expect(textOf(whole.response.body)).toContain('"content":"Hi"');
    await expect(ask(client, false)).rejects.toThrow("Not like that.");
    const refused = await newest(url);
    expect(refused).toMatchObject({ outcome: "refused", status: 422, error: "Not like that." });
    expect(refused.asked[0]).toMatchObject({ status: 422 });
    expect(textOf(refused.asked[0]?.response ?? { chunks: [] })).toContain("invalid_request_error");
  });

  // Events are not kept: they are read from the answer again, and what was made while it was served must come out the same.
  test("the events are those that the client's answer was written from", async () => {
    const call = { index: 0, type: "function", function: { name: "look", arguments: '{"a":1}' } };
    const { url, client } = await gateway((response, body) => {
      if (body["stream"] === true)
        void send(response, [role, event({ content: "Let me" }), event({ tool_calls: [call] })]);
      else say(response, body, "Hi");
    });
    await ask(client, false);
    const types = (await newest(url)).events.chunks.flatMap(({ events }) => events.map(({ type }) => type));
    expect(types).toEqual(expect.arrayContaining(["start", "text-delta", "finish", "end"]));
    expect(types.filter((type) => type === "end")).toHaveLength(1);
    await ask(client).catch(() => {});
    const { events, response } = await newest(url);
    const all = events.chunks.flatMap(({ events }) => events);
    const begun = all.find((one) => one.type === "tool-call-start");
    if (begun?.type !== "tool-call-start") throw new Error("no call began");
    expect(begun.id).toMatch(/^call_/);
    expect(textOf(response.body)).toContain(`"id":"${begun.id}"`);
    expect(all.at(-1)?.type).toBe("end");
  });

  test("an answer that the client left has no repairs of an end that never came", async () => {
    const { url } = await gateway((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(role + event({ content: "One" }));
    });
    const leaving = new AbortController();
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], stream: true }),
      signal: leaving.signal,
    });
    await response.body?.getReader().read();
    leaving.abort();
    const { asked, events, outcome } = await newest(url);
    expect(outcome).toBe("cancelled");
    expect(asked[0]?.repairs.map(({ id }) => id)).not.toContain("no-done");
    expect(events.chunks.flatMap(({ events }) => events)).toContainEqual(
      expect.objectContaining({ type: "text-delta", text: "One" }),
    );
  });

  test("each attempt by itself, also one that broke off", async () => {
    const { url, client } = await gateway((response, body, attempt) => {
      if (attempt === 1) response.destroy();
      else say(response, body, "Hi");
    });
    await ask(client);
    const { asked } = await newest(url);
    expect(asked.length).toBeGreaterThan(1);
    expect(asked[0]).toMatchObject({ error: expect.any(String), response: { chunks: [] } });
    expect(textOf(asked.at(-1)?.response ?? { chunks: [] })).toContain("[DONE]");
  });

  test("no key is shown: not the upstream's in its headers, nor where it repeats it, in chunks", async () => {
    const key = "sk-upstream-0123456789";
    const told = event({ content: `Your key is ${key}.` });
    const half = told.indexOf(key) + 9;
    const chunks = [role, told.slice(0, half), told.slice(half), finish, "data: [DONE]\n\n"];
    const { url, client } = await gateway((response) => void send(response, chunks), {
      key,
      headers: { "x-tenant-token": "tenant-secret-42" },
    });
    await ask(client);
    const request = await newest(url);
    const shown = JSON.stringify(request);
    expect(shown).not.toContain(key);
    expect(shown).not.toContain(key.slice(0, 14));
    expect(shown).not.toContain("tenant-secret-42");
    expect(request.asked[0]?.headers).toContainEqual(["x-tenant-token", "[key]"]);
    expect(textOf(request.asked[0]?.response ?? { chunks: [] })).toContain("Your key is [key].");
    const capture = await (await fetch(`${url}/admin/requests/${request.id}/capture`)).text();
    expect(capture).not.toContain(key);
  });

  test("a long stream keeps its beginning and its end, and says what is between", async () => {
    const upstream = await startScripted((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(role + Array.from({ length: 4000 }, (_, at) => event({ content: `w${at} ` })).join("") + finish);
    });
    closeAfterTest(upstream.close);
    const server = await createServer({
      port: 0,
      logLevel: "silent",
      inspectSize: "1MiB",
      models: [{ kind: "upstream", name: "u", url: upstream.url }],
    });
    closeAfterTest(() => server.close(0));
    await ask(new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" }));
    const { id, response, events } = await newest(server.url);
    expect(textOf(response.body)).toMatch(/^data: .*"role":"assistant".*data: \[DONE\]\n\n$/s);
    expect(response.body.left_out?.characters).toBeGreaterThan(100_000);
    expect(events.left_out?.chunks).toBeGreaterThan(0);
    const { bytes, max_bytes: maxBytes } = await listed(server.url);
    expect(bytes).toBeLessThanOrEqual(maxBytes);
    const capture = await fetch(`${server.url}/admin/requests/${id}/capture`);
    expect([capture.status, await capture.text()]).toEqual([409, expect.stringContaining("too long")]);
  });
});

// Adaptations were shown as repairs of the answer, at its first byte.
test("the adaptations of a request are shown with their places, apart from the repairs of the answer", async () => {
  const { url, client } = await gateway((response, body) => say(response, body, "Hello"));
  await client.chat.completions.create({
    model: "m",
    messages: [
      { role: "developer", content: "S" },
      { role: "user", content: "U" },
      { role: "assistant", content: "A" },
      { role: "system", content: "T" },
    ],
  });
  const [sent] = (await newest(url)).asked;
  expect(sent?.adaptations).toEqual([
    {
      id: "instruction-role",
      sentence: "An instruction was sent with the role that the server accepts.",
      place: "messages[0].role",
    },
    {
      id: "system-as-user",
      sentence: "A later system message was sent as a marked text of the user's.",
      place: "messages[3]",
    },
  ]);
  expect(sent?.repairs.map(({ id }) => id)).not.toContain("system-as-user");
});

test("a limit that was lowered is an adaptation of the request that was sent again", async () => {
  const { url, client } = await gateway((response, body, attempt) => {
    if (attempt > 1) return say(response, body, "Hello");
    const message = "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]";
    return response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error: { message } }));
  });
  const messages = [{ role: "user" as const, content: "Hi" }];
  await client.chat.completions.create({ model: "m", messages, max_tokens: 32_000 });
  const request = await newest(url);
  expect(request).toMatchObject({ outcome: "finished", attempts: 2, repairs: { "max-tokens": 1 } });
  expect(request.asked).toMatchObject([
    { status: 400, repairs: [], adaptations: [] },
    { status: 200, repairs: [], adaptations: [{ id: "max-tokens" }] },
  ]);
  expect(request.asked.map(({ body }) => (JSON.parse(body.text) as { max_tokens: number }).max_tokens)).toEqual([
    32_000, 8192,
  ]);
});
