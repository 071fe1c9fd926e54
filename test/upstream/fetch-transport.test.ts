import { afterEach, describe, expect, test } from "vitest";
import { openTransport as openFetch } from "../../src/engines/upstream/fetch-transport.ts";
import { openUpstreamEngine } from "../../src/engines/upstream/upstream-engine.ts";
import type { UpstreamOptions } from "../../src/engines/upstream/options.ts";
import { openTransport as openUndici } from "../../src/engines/upstream/undici-transport.ts";
import type { Engine } from "../../src/wire/core/engine.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { readChatRequest } from "../../src/wire/apis/chat/request.ts";
import { event, finish, role, startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";

/** An upstream asked through `fetch`, as in Workers, answers as one asked through undici. */

const done = "data: [DONE]\n\n";
let server: ScriptedServer;
const engines: Engine[] = [];

afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.close(0)));
  await server.close();
});

async function open(transport: typeof openFetch, more: Partial<UpstreamOptions> = {}): Promise<Engine> {
  const engine = await openUpstreamEngine({ urls: [server.url], name: "test", retries: 0, ...more }, transport);
  engines.push(engine);
  return engine;
}

function requestFor(stream: boolean): ReturnType<typeof readChatRequest>["request"] {
  const body = { model: "m", stream, messages: [{ role: "user", content: "Hi" }] };
  return readChatRequest(body, "req_1", { forwards: true }).request;
}

async function eventsOf(engine: Engine, stream: boolean): Promise<GenerationEvent[]> {
  const events: GenerationEvent[] = [];
  for await (const batch of engine.generate(requestFor(stream))) events.push(...batch);
  return events;
}

/** What a generation tells, without what differs between two runs: how its pieces were cut. */
function told(events: readonly GenerationEvent[]): unknown {
  const text = events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");
  return { text, rest: events.filter(({ type }) => type !== "text-delta").map(({ type }) => type), end: events.at(-1) };
}

const answer = JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
});

describe.each([
  [
    "a stream, cut in the middle of a character",
    true,
    Buffer.from(role + event({ content: "Grüße 🌍" }) + finish + done),
  ],
  ["a stream that ends too early", true, Buffer.from(role + event({ content: "Gr" }))],
  ["a whole answer", false, Buffer.from(answer)],
] as const)("%s", (_, stream, bytes) => {
  test("both transports tell the same", async () => {
    server = await startScripted((response) => {
      const middle = bytes.indexOf(0xf0) + 2;
      response.writeHead(200, { "x-ratelimit-remaining-requests": "9" });
      response.write(bytes.subarray(0, middle));
      setTimeout(() => response.end(bytes.subarray(middle)), 20);
    });
    const [viaFetch, viaUndici] = [await open(openFetch), await open(openUndici)];
    expect(viaFetch.models()).toEqual(viaUndici.models());
    expect(told(await eventsOf(viaFetch, stream))).toEqual(told(await eventsOf(viaUndici, stream)));
  });
});

test("an error keeps its status and when to try again; a server that is not there is 503", async () => {
  server = await startScripted((response) => {
    response.writeHead(429, { "retry-after": "60" });
    response.end(JSON.stringify({ error: { message: "Slow down", type: "requests", param: null, code: null } }));
  });
  const engine = await open(openFetch);
  expect((await eventsOf(engine, true)).at(-1)).toMatchObject({
    end: { failure: { message: "Slow down", status: 429, retryAfterSeconds: 60 } },
  });
  const gone = await startScripted(() => {});
  await gone.close();
  const absent = await open(openFetch, { urls: [gone.url], models: { m: "m" } });
  expect((await eventsOf(absent, true)).at(-1)).toMatchObject({ end: { failure: { status: 503 } } });
});

test("a client that leaves closes the upstream's connection, before the first byte and in the middle", async () => {
  for (const begun of [false, true]) {
    server = await startScripted((response) => {
      if (begun) response.write(role + event({ content: "x" }));
    });
    const engine = await open(openFetch);
    const batches = engine.generate(requestFor(true))[Symbol.asyncIterator]();
    if (begun) await batches.next();
    const waiting = batches.next();
    await expect.poll(() => server.open()).toBe(1);
    await batches.return?.();
    // A reader that waits is let go.
    await waiting;
    await expect.poll(() => server.open()).toBe(0);
    if (!begun) await server.close();
  }
});

test("a reader that takes nothing holds the upstream back", async () => {
  let written = 0;
  server = await startScripted((response) => {
    response.write(role);
    const piece = event({ content: "x".repeat(64 * 1024) });
    const more = (): void => {
      for (;;) {
        written += piece.length;
        if (response.destroyed || written > 200 * 1024 * 1024 || !response.write(piece)) break;
      }
      response.once("drain", more);
    };
    more();
  });
  const engine = await open(openFetch);
  const batches = engine.generate(requestFor(true))[Symbol.asyncIterator]();
  await batches.next();
  let before = -1;
  await expect
    .poll(() => {
      const still = written === before;
      before = written;
      return still;
    })
    .toBe(true);
  expect(written).toBeLessThan(32 * 1024 * 1024);
  await batches.return?.();
});

test("TLS options are refused, which fetch does not have", async () => {
  server = await startScripted(() => {});
  await expect(open(openFetch, { tls: { verify: false } })).rejects.toThrow("need Node");
});
