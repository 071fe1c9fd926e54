import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { keyOf } from "../keys/support.ts";
import { ScriptedEngine, until } from "../support/scripted-engine.ts";
import { chat, json, transports, serving } from "../support/transports.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { createServer } from "../../src/serve/app/create-server.ts";
import { cutAfter, eventsIn, idOf, open, post } from "./support.ts";
import type { Opened } from "./support.ts";

const path = "chat/completions";
const words = ["one", " two", " three", " four"];

interface Lost extends Opened {
  readonly place: string;
  /** The events that the client has. */
  readonly events: readonly string[];
}

/** A stream whose client has received its first word and lost its connection. */
async function lost(headers: Readonly<Record<string, string>> = {}, config = {}, texts = words): Promise<Lost> {
  const opened = await open(texts, config);
  opened.allow(1);
  const { headers: answered, events } = await cutAfter(opened.url, `/v1/${path}`, post(path, headers), 300);
  return { ...opened, place: `/v1/streams/${answered["x-request-id"]}`, events };
}

async function textOf(url: string, init?: RequestInit): Promise<string> {
  return (await fetch(url, init)).text();
}

/** The open requests of the server, without the one that asks. */
async function openRequests(url: string): Promise<number> {
  return Number(/"open":(\d+)/.exec(await textOf(`${url}/health`))?.[1]) - 1;
}

describe("a lost stream", () => {
  test("ends after the time that its client asked for, and is gone", async () => {
    const { url, engine, place } = await lost({ "x-truewire-resume": "50ms" });
    await until(() => engine.running === 0, "the engine is free");
    expect(engine.aborted).toBe(1);
    const gone = await fetch(url + place);
    expect([gone.status, await gone.json()]).toMatchObject([
      404,
      { error: { type: "invalid_request_error", message: expect.stringContaining("no stream 'req_") as unknown } },
    ]);
    expect((await fetch(url + place, { method: "DELETE" })).status).toBe(404);
    await until(async () => (await openRequests(url)) === 0, "the request has ended");
  });

  test("ends at once without the header, and when its server does not allow it", async () => {
    for (const [headers, config] of [
      [{ "x-truewire-resume": "0" }, {}],
      [{}, { resumeStreams: 0 }],
    ] as const) {
      const { url, engine, place, events } = await lost(headers, config);
      await until(() => engine.running === 0, "the engine is free");
      expect(events.map(idOf)).toEqual(events.map(() => Number.NaN));
      expect((await fetch(url + place)).status).toBe(404);
    }
  });

  test("may ask for no more time than the server allows, and is told how much it has", async () => {
    const { url, allow } = await open(words, { resumeStreams: "2s" });
    allow(Number.POSITIVE_INFINITY);
    const answered = await fetch(`${url}/v1/${path}`, post(path, { "x-truewire-resume": "1h" }));
    expect(answered.headers.get("x-truewire-resume")).toBe("2s");
    await answered.text();
  });

  test("goes on while it has a reader, also longer than that", async () => {
    const { url, engine, place, allow } = await lost({ "x-truewire-resume": "1s" });
    const reading = fetch(url + place).then((response) => response.text());
    await until(async () => (await openRequests(url)) === 2, "it is read");
    const unread = await lost({ "x-truewire-resume": "1s" });
    await until(() => unread.engine.running === 0, "one without a reader has ended");
    expect(engine.running).toBe(1);
    allow(Number.POSITIVE_INFINITY);
    expect(await reading).toContain("[DONE]");
  });

  test("is stopped by DELETE, which its readers see", async () => {
    const { url, engine, place } = await lost();
    const reading = fetch(url + place).then((response) => response.text());
    await until(async () => (await openRequests(url)) === 2, "it is read");
    expect((await fetch(url + place, { method: "DELETE" })).status).toBe(204);
    expect(await reading).not.toContain("[DONE]");
    await until(() => engine.running === 0, "the engine is free");
    expect((await fetch(url + place)).status).toBe(404);
  });

  test("belongs to its key", async () => {
    const [alice, bob] = [keyOf("alice"), keyOf("bob")];
    const authorization = `Bearer ${alice.key}`;
    const { url, place, allow } = await lost({ authorization }, { keys: [alice.entry, bob.entry] });
    for (const method of ["GET", "HEAD", "DELETE"]) {
      expect((await fetch(url + place, { method })).status).toBe(401);
      const others = await fetch(url + place, { method, headers: { "x-api-key": bob.key } });
      expect(others.status).toBe(404);
    }
    const known = await fetch(url + place, { headers: { "x-api-key": bob.key, "anthropic-version": "2023-06-01" } });
    const unknown = await fetch(`${url}/v1/streams/req_0`, { headers: { "x-api-key": bob.key } });
    expect([await known.json(), unknown.status]).toMatchObject([
      { type: "error", error: { type: "not_found_error" } },
      404,
    ]);
    allow(Number.POSITIVE_INFINITY);
    expect(await textOf(url + place, { headers: { authorization } })).toContain("[DONE]");
  });

  test("occupies its key's concurrency until it ends, and its tokens count once", async () => {
    const { entry, key } = keyOf("alice", { concurrency: 1, tokensPerMinute: 100_000 });
    const headers = { authorization: `Bearer ${key}` };
    const { url, place, allow } = await lost(headers, { keys: [entry] });
    const next = (): Promise<Response> => fetch(`${url}/v1/${path}`, post(path, headers));
    expect((await next()).status).toBe(429);
    allow(Number.POSITIVE_INFINITY);
    for (let times = 0; times < 3; times++) expect(await textOf(url + place, { headers })).toContain("[DONE]");
    const left = Number((await next()).headers.get("x-ratelimit-remaining-tokens"));
    const second = Number((await next()).headers.get("x-ratelimit-remaining-tokens"));
    // The first answer cost what the second one does, although it was read three times. Some tokens are refilled meanwhile.
    expect(100_000 - left).toBeLessThanOrEqual(2 * (100_000 - second));
    expect(second).toBeLessThan(100_000);
  });

  test("is controlled by the id of its request, and counts as a request until it ends", async () => {
    const { url, place, allow } = await lost();
    expect(await openRequests(url)).toBe(1);
    const control = json({ id: place.split("/").at(-1), action: "reasoning_end" });
    // This source has no reasoning; an id that is not known is answered with 404.
    expect((await fetch(`${url}/v1/${path}/control`, control)).status).toBe(501);
    allow(Number.POSITIVE_INFINITY);
    await until(async () => (await openRequests(url)) === 0, "the request has ended");
    expect(await textOf(url + place)).toContain("[DONE]");
  });

  test("is shown with its story in Inspect, the log and the numbers", async () => {
    const lines: [object, string][] = [];
    const log = {
      debug() {},
      warn() {},
      error() {},
      info: (fields: object, text: string) => lines.push([fields, text]),
    };
    const engine = new ScriptedEngine(async function* (_, signal) {
      yield [
        { type: "start", choice: 0 },
        { type: "text-delta", choice: 0, text: "one" },
      ];
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    });
    const server = await createServer({ port: 0, metrics: "open", ...serving(engine) }, { log });
    closeAfterTest(() => server.close(0));
    const { url } = server;
    const { headers } = await cutAfter(url, `/v1/${path}`, post(path), 300);
    const id = headers["x-request-id"] ?? "";
    await cutAfter(url, `/v1/streams/${id}`, {}, 10);
    const shown = async (): Promise<unknown> => JSON.parse(await textOf(`${url}/admin/requests/${id}`)) as unknown;
    await until(async () => JSON.stringify(await shown()).includes('"lost":2'), "it is lost again");
    expect(await shown()).toMatchObject({ outcome: "open", lost: 2, resumes: 1 });
    expect(JSON.stringify(await shown())).toContain(String.raw`"id: 0\ndata: {`);
    await fetch(`${url}/v1/streams/${id}`, { method: "DELETE" });
    const line = (): unknown => lines.find(([fields]) => "req" in fields && fields.req === id);
    await until(() => line() !== undefined, "its line is written");
    expect(line()).toMatchObject([{ lost: 2, resumes: 1, status: 200 }, "cancelled by client"]);
    expect(await textOf(`${url}/metrics`)).toMatch(/^truewire_resumed_streams_total 1$/m);
  });

  test("ends when its server closes: its client cannot come back", async () => {
    const { server, engine } = await lost();
    await server.close(600_000);
    expect(engine.running).toBe(0);
  });
});

describe("a stream that is read", () => {
  test("is received to its end by its client when the server closes meanwhile", async () => {
    const { server, url, allow } = await open(words);
    allow(1);
    const answered = await fetch(`${url}/v1/${path}`, post(path));
    const closed = server.close(60_000);
    allow(Number.POSITIVE_INFINITY);
    expect(await answered.text()).toContain("[DONE]");
    await closed;
  });

  test("is received by several readers, each from its place", async () => {
    const { url, place, allow, engine } = await lost();
    allow(2);
    await until(() => engine.pulled === 2, "it has written more");
    const readers = ["", "0", "1"].map(async (id) =>
      eventsIn(await textOf(url + place, { headers: { "last-event-id": id } })),
    );
    readers.push(textOf(`${url}${place}?starting_after=2`).then(eventsIn));
    await until(async () => (await openRequests(url)) === 5, "all read");
    allow(Number.POSITIVE_INFINITY);
    const all = await Promise.all(readers);
    expect(all.map((events) => idOf(events[0]))).toEqual([0, 1, 2, 3]);
    expect(new Set(all.map((events) => events.at(-1)))).toEqual(new Set([`id: 6\ndata: [DONE]`]));
  });

  test("has ended: it is kept, and a client that has all of it is told not to come back", async () => {
    const { url, place, allow, engine } = await lost();
    allow(Number.POSITIVE_INFINITY);
    await until(() => engine.running === 0, "it has ended");
    const all = eventsIn(await textOf(url + place));
    expect(all.map(idOf)).toEqual([...all.keys()]);
    const head = await fetch(url + place, { method: "HEAD" });
    expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
    const done = await fetch(url + place, { headers: { "last-event-id": String(all.length - 1) } });
    expect(done.status).toBe(204);
    for (const id of [String(all.length), "-1", "x", "1.5", "9".repeat(400)]) {
      const refused = await fetch(url + place, { headers: { "last-event-id": id } });
      expect([id, refused.status, await refused.json()]).toMatchObject([
        id,
        400,
        {
          error: { param: "Last-Event-ID", message: expect.stringContaining(`from 0 to ${all.length - 1}`) as unknown },
        },
      ]);
    }
    expect((await fetch(`${url}${place}?starting_after=99`)).status).toBe(400);
  });

  test("keeps four million characters: an unread stream waits, and what was dropped is refused", async () => {
    const texts = Array.from({ length: 12 }, () => "x".repeat(1_000_000));
    const { url, place, allow, engine } = await lost({}, {}, ["x", ...texts]);
    allow(Number.POSITIVE_INFINITY);
    await until(() => engine.pulled >= 5, "it has written much");
    for (let turns = 0; turns < 50; turns++) await new Promise(setImmediate);
    expect(engine.pulled).toBeLessThan(8);
    const all = eventsIn(await textOf(url + place));
    expect(all.map(idOf)).toEqual([...all.keys()]);
    const early = await fetch(url + place, { headers: { "last-event-id": "1" } });
    expect([early.status, await early.json()]).toMatchObject([410, { error: { code: "events_not_kept" } }]);
    const late = await fetch(url + place, { headers: { "last-event-id": String(all.length - 3) } });
    expect(eventsIn(await late.text())).toEqual(all.slice(-2));
  });
});

test("of a transcription is resumed, too", async () => {
  const { url, allow } = await open(words);
  allow(Number.POSITIVE_INFINITY);
  const form = new FormData();
  form.set("model", "scripted");
  form.set("stream", "true");
  form.set("file", new Blob(["RIFF\0\0\0\0WAVEfmt "]), "a.wav");
  const headers = { "x-truewire-resume": "9s" };
  const answered = await fetch(`${url}/v1/audio/transcriptions`, { method: "POST", headers, body: form });
  const all = eventsIn(await answered.text());
  expect(all.map(idOf)).toEqual([...all.keys()]);
  const place = `${url}/v1/streams/${answered.headers.get("x-request-id")}`;
  expect(eventsIn(await textOf(place, { headers: { "last-event-id": "1" } }))).toEqual(all.slice(2));
});

// A phone that changes its network often leaves a connection that looks open and takes nothing.
test("a reader that takes nothing is disconnected, as without the header, and may come back", async () => {
  const texts = Array.from({ length: 40 }, () => "x".repeat(100_000));
  const { url, engine, allow } = await open(texts, { readerPatience: "50ms" });
  engine.health = () => ({ state: "ready", slots: { busy: 1, total: 1 }, queued: 1, counters: {} });
  const { hostname, port } = new URL(url);
  const { body, headers = {} } = post(path);
  const request = [`POST /v1/${path} HTTP/1.1`, "host: localhost", `content-length: ${String(body).length}`];
  for (const [name, value] of Object.entries(headers)) request.push(`${name}: ${String(value)}`);
  const socket = connect(Number(port), hostname);
  closeAfterTest(() => socket.destroy());
  socket.on("error", () => {});
  socket.write(`${request.join("\r\n")}\r\n\r\n${String(body)}`);
  allow(1);
  const id = await new Promise<string>((resolve) => {
    socket.once("data", (data) => resolve(/^x-request-id: (\S+)/m.exec(String(data))?.[1] ?? ""));
  });
  socket.pause();
  allow(Number.POSITIVE_INFINITY);
  await until(() => engine.running === 0, "the answer has been written to its end");
  expect(engine.aborted).toBe(0);
  const all = eventsIn(await textOf(`${url}/v1/streams/${id}`));
  expect(all.map(idOf)).toEqual([...all.keys()]);
  expect(all.at(-1)).toContain("[DONE]");
});

describe("a request", () => {
  test("with a time that is none is refused", async () => {
    const { url } = await open(words);
    for (const time of ["soon", "-1s", "1.5h", "", "true"]) {
      const refused = await fetch(`${url}/v1/${path}`, post(path, { "x-truewire-resume": time }));
      expect([refused.status, (await refused.json()) as unknown]).toMatchObject([
        400,
        { error: { message: expect.stringContaining("x-truewire-resume") as unknown } },
      ]);
    }
  });

  test.each([
    ["without a stream", "/v1/chat/completions", { ...JSON.parse(String(chat("x").body)), stream: false }, "streamed"],
    ["to Ollama's API", "/api/chat", { model: "scripted", messages: [{ role: "user", content: "x" }] }, "server-sent"],
    ["in the background", "/v1/responses", { model: "scripted", input: "x", background: true }, "starting_after"],
  ])("%s is answered, with a warning", async (_, place, body, why) => {
    const { url, allow } = await open(words);
    allow(Number.POSITIVE_INFINITY);
    const init = json(body);
    const answered = await fetch(url + place, { ...init, headers: { ...init.headers, "x-truewire-resume": "9s" } });
    expect([answered.status, answered.headers.get("x-truewire-resume")]).toEqual([200, null]);
    expect(answered.headers.get("x-truewire-warning")).toContain(why);
    await answered.text();
  });

  test("that fails before its stream is answered with its status, and leaves no stream", async () => {
    const { url } = await open(words);
    const refused = await fetch(`${url}/v1/${path}`, post(path, {}, { model: "another" }));
    expect([refused.status, refused.headers.get("x-truewire-resume")]).toEqual([404, null]);
    expect((await fetch(`${url}/v1/streams/${refused.headers.get("x-request-id")}`)).status).toBe(404);
  });

  test("of a page may have the headers, and read them", async () => {
    const { url, allow } = await open(words, { corsOrigin: "https://app.example.com" });
    allow(Number.POSITIVE_INFINITY);
    const origin = { origin: "https://app.example.com" };
    const answered = await fetch(`${url}/v1/${path}`, post(path, origin));
    expect(answered.headers.get("access-control-expose-headers")).toContain("X-Truewire-Resume");
    await answered.text();
    const place = `${url}/v1/streams/${answered.headers.get("x-request-id")}`;
    const preflight = await fetch(place, { method: "OPTIONS", headers: origin });
    expect(preflight.headers.get("access-control-allow-headers")).toContain("last-event-id");
    expect(preflight.headers.get("access-control-allow-methods")).toBe("GET, HEAD, DELETE, OPTIONS");
    expect((await fetch(place, { headers: { origin: "https://other.example.com" } })).status).toBe(403);
  });
});

describe.each(transports)("over $name", ({ open: openTransport }) => {
  test("a stream is resumed", async () => {
    let goOn = (): void => {};
    const waiting = new Promise<void>((resolve) => (goOn = resolve));
    const engine = new ScriptedEngine(async function* () {
      yield [
        { type: "start", choice: 0 },
        { type: "text-delta", choice: 0, text: "one" },
      ];
      await waiting;
      yield [
        { type: "text-delta", choice: 0, text: "two" },
        { type: "finish", choice: 0, reason: "stop" },
      ];
      yield [{ type: "end", end: { kind: "done" } }];
    });
    const api = await openTransport(serving(engine));
    closeAfterTest(() => api.close());
    const answered = await api.fetch(`/v1/${path}`, post(path));
    const reader = answered.body?.getReader();
    const begun = new TextDecoder().decode((await reader?.read())?.value);
    await reader?.cancel();
    goOn();
    const id = String(idOf(eventsIn(begun).at(-1)));
    const place = `/v1/streams/${answered.headers.get("x-request-id")}`;
    const rest = await (await api.fetch(place, { headers: { "last-event-id": id } })).text();
    expect(begun + rest).toMatch(/"one"[^]*"two"[^]*\[DONE\]/);
    expect(eventsIn(begun + rest).map(idOf)).toEqual([...eventsIn(begun + rest).keys()]);
  });
});
