import { noKey } from "../../src/serve/server/turn-key.ts";
import { once } from "node:events";
import { createServer as createHttpServer, request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { PriceList } from "../../src/serve/server/keys/prices.ts";
import { ModelRoutes } from "../../src/serve/server/model-routes.ts";
import { afterEach, describe, expect, test, vi } from "vitest";
import { responsesSocket } from "../../src/wire/apis/responses/socket.ts";
import { createHandler } from "../../src/server.ts";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { lean } from "../../src/wire/apis/profile.ts";
import { BodyBudget } from "../../src/serve/server/body-budget.ts";
import { AssembledTexts } from "../../src/serve/server/client-stores.ts";
import { Runs } from "../../src/serve/server/runs.ts";
import { RunningAnswers } from "../../src/serve/server/running-answers.ts";
import { silentLog } from "../../src/serve/server/log.ts";
import { listen } from "../../src/serve/server/listen.ts";
import { Requests } from "../../src/serve/server/service.ts";
import { WebSockets } from "../../src/serve/server/web-sockets.ts";
import type { SocketLimits } from "../../src/serve/server/web-sockets.ts";
import { KeyRing } from "../../src/serve/server/keys/key-ring.ts";
import { MemoryLimiter } from "../../src/serve/kv/memory-limiter.ts";
import { Mask } from "../../src/serve/server/mask.ts";
import { ModelDirectory } from "../../src/serve/server/model-directory.ts";
import { unrestrictedOrigins } from "../../src/serve/server/origins.ts";
import { MemoryStore } from "../../src/serve/kv/memory-store.ts";
import { idOf, said, SocketClient } from "../support/response-socket.ts";
import { answer, failed, ScriptedEngine, until } from "../support/scripted-engine.ts";
import type { Script } from "../support/scripted-engine.ts";
import { json, serving } from "../support/transports.ts";

/** How many messages it was told. */
const count: Script = ({ prompt }) => answer([`${prompt.kind === "chat" ? prompt.messages.length : 0}`]);

describe("Responses by WebSocket", () => {
  const servers: TruewireServer[] = [];
  const clients: SocketClient[] = [];
  afterEach(async () => {
    for (const { socket } of clients.splice(0)) socket.terminate();
    await Promise.all(servers.splice(0).map((server) => server.close(0)));
  });

  const serve = async (script: Script = count, config: TruewireConfig = {}): Promise<[string, ScriptedEngine]> => {
    const engine = new ScriptedEngine(script);
    const server = await createServer({ port: 0, logLevel: "silent", ...serving(engine, config) });
    servers.push(server);
    return [server.url, engine];
  };
  const connect = async (url: string, headers: Record<string, string> = {}): Promise<SocketClient> => {
    const client = new SocketClient(url, headers);
    clients.push(client);
    return client.opened();
  };

  test("the events of the stream come as messages, without the mark of the end, one answer after the other", async () => {
    const [url] = await serve();
    const client = await connect(url);
    const streamed = await fetch(`${url}/v1/responses`, json({ model: "scripted", input: "x", stream: true }));
    const types = [...(await streamed.text()).matchAll(/^event: (.*)$/gm)].map(([, type]) => type);
    for (let i = 0; i < 3; i++) {
      const events = await client.answer({ input: "x", store: false });
      expect(events.map(({ type }) => type)).toEqual(types);
      expect(events.map(({ sequence_number: number }) => number)).toEqual([...types.keys()]);
    }
  });

  // The messages of a connection are received one after another, and an exception ended that chain: no later message was received, and the
  // unhandled rejection could end the process. No message of a test caused one.
  test("a message that cannot be handled is answered with an error, and the next ones are received", async () => {
    const connectAsBefore = responsesSocket.connect;
    const spy = vi.spyOn(responsesSocket, "connect").mockImplementation((random) => {
      const connection = connectAsBefore(random);
      const receive = connection.receive.bind(connection);
      connection.receive = (message, bytes) => {
        if (JSON.stringify(message)?.includes("defect")) throw new RangeError("A defect.");
        return receive(message, bytes);
      };
      return connection;
    });
    const [url] = await serve();
    const client = await connect(url);
    spy.mockRestore();
    for (let i = 0; i < 2; i++) {
      expect(await client.answer({ input: "defect", store: false })).toMatchObject([{ type: "error", status: 500 }]);
      expect(said(await client.answer({ input: "x", store: false }))).toBe("1");
    }
  });

  test("what nothing may keep is gone on from on the same connection alone", async () => {
    const [url] = await serve();
    const [client, other] = [await connect(url), await connect(url)];
    let id = idOf(await client.answer({ input: "x", store: false }));
    for (const messages of ["3", "5", "7"]) {
      const events = await client.answer({ input: "y", store: false, previous_response_id: id });
      expect(said(events)).toBe(messages);
      const [refused] = await other.answer({ input: "y", previous_response_id: id });
      expect(refused).toEqual({
        type: "error",
        status: 400,
        error: {
          message: `Previous response with id '${id}' not found.`,
          type: "invalid_request_error",
          param: "previous_response_id",
          code: "previous_response_not_found",
        },
      });
      id = idOf(events);
    }
    expect((await fetch(`${url}/v1/responses/${id}`)).status).toBe(404);
  });

  test("what is stored is gone on from anywhere, what was not stored before it, too", async () => {
    const [url] = await serve();
    const [client, other] = [await connect(url), await connect(url)];
    const first = idOf(await client.answer({ input: "x", store: false }));
    const second = idOf(await client.answer({ input: "y", previous_response_id: first }));
    expect(said(await other.answer({ input: "z", previous_response_id: second }))).toBe("5");
    const compacted = await fetch(
      `${url}/v1/responses/compact`,
      json({ model: "scripted", previous_response_id: second }),
    );
    const { output } = (await compacted.json()) as { output: readonly unknown[] };
    const third = idOf(await other.answer({ input: [...output, { role: "user", content: "z" }], store: false }));
    expect(said(await other.answer({ input: "z", previous_response_id: third }))).toBe("7");
  });

  // Codex sends its instructions and tools so before it is asked anything. It was answered at length, to no question.
  test("what is only prepared has an empty answer, and is gone on from", async () => {
    const [url, engine] = await serve();
    const client = await connect(url);
    const input = [{ role: "developer", content: "Be kind." }];
    const events = await client.answer({ input, store: false, generate: false });
    expect(events.map(({ type }) => type)).toEqual(["response.created", "response.in_progress", "response.completed"]);
    expect(events.at(-1)?.response).toMatchObject({ status: "completed", output: [] });
    expect(engine.requests).toHaveLength(0);
    const next = await client.answer({ input: "x", store: false, previous_response_id: idOf(events) });
    expect(said(next)).toBe("2");
  });

  // The compliance tests of Open Responses wait for an error's code, which was null.
  test("a turn that fails ends the conversation", async () => {
    const [url] = await serve();
    const client = await connect(url);
    const id = idOf(await client.answer({ input: "x", store: false }));
    const wrong = { type: "function_call_output", call_id: "call_x", output: "y" };
    const [refused] = await client.answer({ input: [wrong], store: false, previous_response_id: id });
    expect(refused).toMatchObject({
      type: "error",
      status: 400,
      error: { param: "input", code: "tool_call_not_found" },
    });
    const [gone] = await client.answer({ input: "y", store: false, previous_response_id: id });
    expect(gone).toMatchObject({ status: 400, error: { code: "previous_response_not_found" } });
    expect(said(await client.answer({ input: "y" }))).toBe("1");
  });

  test("what is no request is told so, and the connection goes on", async () => {
    const [url] = await serve(() => [[failed("rejected", { status: 429, message: "Too many." })]]);
    const client = await connect(url);
    for (const [message, error] of [
      ["{", { message: expect.stringContaining("is not valid JSON: line 1, column 2") }],
      ["[]", { message: expect.stringContaining("expected an object") }],
      ['{"type":"session.update"}', { param: "type" }],
      ['{"type":"response.create","input":"x"}', { message: "Missing required parameter: 'model'." }],
      ['{"type":"response.create","model":"other","input":"x"}', { code: "model_not_found" }],
      ['{"type":"response.create","model":"scripted","input":"x","background":true}', { param: "background" }],
      ['{"type":"response.create","model":"scripted","input":"x","stream":false}', { message: "Too many." }],
    ] as const) {
      client.events.length = 0;
      client.socket.send(message);
      await until(() => client.events.length > 0, "it is told");
      expect(client.events).toMatchObject([{ type: "error", error }]);
    }
  });

  test("a client that leaves cancels what it asked for", async () => {
    const [url, engine] = await serve(async function* (_, signal) {
      const [first] = answer(["x"]);
      if (first) yield first;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    });
    const client = await connect(url);
    client.send({ input: "x" });
    await until(() => client.events.length > 3, "it has begun");
    client.socket.terminate();
    await until(() => engine.running === 0, "the engine is free");
    expect(engine.aborted).toBe(1);
  });

  test("keys and pages are judged before the connection is made", async () => {
    const [url] = await serve(count, { apiKey: "right" });
    for (const [headers, status] of [
      [{}, 401],
      [{ authorization: "Bearer wrong" }, 401],
      [{ authorization: "Bearer right", origin: "https://evil.example" }, 403],
    ] as const) {
      const client = new SocketClient(url, headers);
      clients.push(client);
      const [, response] = (await once(client.socket, "unexpected-response")) as [unknown, IncomingMessage];
      expect(response.statusCode).toBe(status);
      expect(await textOf(response)).toMatch(/^\{\s*"error"/);
    }
    const client = await connect(url, { authorization: "Bearer right" });
    expect(said(await client.answer({ input: "x" }))).toBe("1");
  });

  test("a message that is too large closes the connection", async () => {
    const [url] = await serve(count, { bodyLimit: 1000 });
    const client = await connect(url);
    client.send({ input: "x".repeat(2000) });
    await until(() => client.closed !== undefined, "it is closed");
    expect(client.closed?.code).toBe(1009);
  });

  test("a server that stops lets an answer end and closes the connection", async () => {
    let goOn: () => void = () => {};
    const waiting = new Promise<void>((resolve) => (goOn = resolve));
    const [url, engine] = await serve(async function* () {
      await waiting;
      yield* answer(["x"]);
    });
    const [client, idle] = [await connect(url), await connect(url)];
    client.send({ input: "x" });
    await until(() => engine.running === 1, "it runs");
    const closing = servers.pop()?.close(20_000);
    await until(() => idle.closed !== undefined, "the idle one is closed");
    expect(idle.closed?.code).toBe(1001);
    goOn();
    await until(() => client.closed !== undefined, "the other one is closed");
    expect(client.events.at(-1)?.type).toBe("response.completed");
    await closing;
  });

  test("any other upgrade is no upgrade", async () => {
    const [url] = await serve();
    const asked = await fetchWith(`${url}/v1/responses`, "POST", {
      connection: "upgrade, http2-settings",
      upgrade: "h2c",
    });
    expect([asked.status, asked.body]).toEqual([200, expect.stringContaining('"status":"completed"')]);
    const elsewhere = { connection: "upgrade", upgrade: "websocket" };
    expect((await fetchWith(`${url}/v1/chat/completions`, "GET", elsewhere)).status).toBe(426);
    expect((await fetchWith(`${url}/v1/nothing`, "GET", elsewhere)).status).toBe(404);
    expect((await fetchWith(`${url}/v1/models`, "GET", elsewhere)).status).toBe(200);
  });

  test("where there is none, a client is told at once", async () => {
    const handler = createHandler(serving(new ScriptedEngine(count)));
    const http = createHttpServer(handler);
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1/responses`;
    const { status, body } = await fetchWith(url, "GET", { connection: "upgrade", upgrade: "websocket" });
    expect([status, JSON.parse(body)]).toMatchObject([426, { error: { code: "websocket_not_supported" } }]);
    http.closeAllConnections();
    http.close();
    await handler.close(0);
  });
});

describe("the limits of a connection", () => {
  const opened = async (
    limits: Partial<SocketLimits>,
    script: Script = count,
    bodies = new BodyBudget(1e9),
  ): Promise<{ client: SocketClient; close: () => void }> => {
    const brief = new MemoryStore({ maxCount: 0, maxBytes: 0, maxAgeMs: 0 });
    const engine = new ScriptedEngine(script);
    // A model that says what it has used has lanes.
    Object.assign(engine.handlers, { usage: async () => null });
    const sockets = new WebSockets(
      {
        state: "ready",
        settings: {
          profile: lean,
          keys: new KeyRing([], [], false),
          prices: new PriceList(),
          routes: new ModelRoutes(),
          origins: unrestrictedOrigins,
          bodyLimit: 1e6,
          mask: new Mask([]),
          holdMs: 1000,
          keepAliveMs: 10_000,
          readerPatienceMs: 10_000,
        } as never,
        directory: new ModelDirectory([{ name: "x", engine, aliases: [], settings: {} }]),
        log: silentLog,
        requests: new Requests(),
        answers: new RunningAnswers(),
        bodies,
        admin: {},
        stores: {
          store: brief,
          brief,
          assembled: new AssembledTexts(),
          turnKey: noKey,
          limiter: new MemoryLimiter(),
        },
        watchers: {},
        runs: new Runs(),
      },
      // A client that has not answered a ping when the next one is due is given up: on a busy machine, that may take its time.
      { pingMs: 500, idleMs: 60_000, lifeMs: 60_000, ...limits },
    );
    const { http } = await listen(
      {
        host: "127.0.0.1",
        port: 0,
        headerTimeoutMs: 1000,
        requestTimeoutMs: 1000,
        idleTimeoutMs: 1000,
        descriptorLimit: undefined,
        log: silentLog,
      },
      () => {},
      (request, connection, head) => void sockets.upgrade(request, connection, head),
    );
    const client = new SocketClient(`http://127.0.0.1:${(http.address() as AddressInfo).port}`);
    return {
      client: await client.opened(),
      close: () => {
        client.socket.terminate();
        sockets.cut();
        http.close();
      },
    };
  };

  test("one without a request for long is closed, one that is too old is told so", async () => {
    const idle = await opened({ idleMs: 30 });
    await until(() => idle.client.closed !== undefined, "it is closed");
    expect([idle.client.closed?.code, idle.client.events]).toEqual([1000, []]);
    idle.close();
    const old = await opened({ lifeMs: 30 });
    await until(() => old.client.closed !== undefined, "it is closed");
    expect(old.client.texts).toEqual([
      '{"type":"error","error":{"type":"invalid_request_error","code":"websocket_connection_limit_reached","message":"Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue."},"status":400}',
    ]);
    old.close();
  });

  test("one that is too old takes no more requests, and ends when its responses have ended", async () => {
    let goOn: () => void = () => {};
    const waiting = new Promise<void>((resolve) => (goOn = resolve));
    const { client, close } = await opened({ lifeMs: 2000 }, async function* () {
      await waiting;
      yield* answer(["x"]);
    });
    client.send({ stream_id: "a", input: "x" });
    await until(() => {
      client.socket.send('{"type":"response.create"}');
      return client.events.some(({ error }) => error?.code === "websocket_connection_limit_reached");
    }, "it is too old");
    expect(client.closed).toBeUndefined();
    goOn();
    await until(() => client.closed !== undefined, "it is closed");
    expect(client.ofLane("a").at(-1)?.type).toBe("response.completed");
    expect(client.closed?.code).toBe(1000);
    close();
  });

  // The bytes of a complete message, and of the answer to a ping, were counted for the next message: each connection without a request held
  // 16 KiB, and was closed as too slow while other requests waited for memory.
  test("one without a message holds no memory for bodies", async () => {
    const bodies = new BodyBudget(1e9);
    const { client, close } = await opened({}, count, bodies);
    await client.answer({ input: "x" });
    await until(() => bodies.used === 0, "the message is released");
    let pongs = 0;
    client.socket.on("ping", () => pongs++);
    await until(() => pongs > 3, "pings are answered");
    await until(() => bodies.used === 0, "the answers are released");
    close();
  });

  // What arrived after the refusal was counted on a lease that could not be released again.
  test("one that is closed for too many messages holds no memory for bodies", async () => {
    const bodies = new BodyBudget(1e9);
    const { client, close } = await opened({}, count, bodies);
    // So long that each is parsed in several turns: short messages are answered faster than they arrive.
    const message = `{"type":"response.create","input":"${"x".repeat(100_000)}"}`;
    for (let at = 0; at < 2000; at++) client.socket.send(message);
    await until(() => client.closed !== undefined, "it is closed");
    // Not as at the end of its age, 1000. A client that still sends may get a reset (1006) before it reads the server's 1013.
    expect([1006, 1013]).toContain(client.closed?.code);
    await until(() => bodies.used === 0, "everything is released");
    close();
  });

  test("one whose client is gone without a word is given up", async () => {
    const { client, close } = await opened({});
    // It reads nothing any more, so no ping is answered.
    client.socket.pause();
    await until(async () => {
      const { promise, resolve } = withResolver();
      client.socket.send("x", (error) => resolve(error !== undefined));
      return promise;
    }, "it is broken off");
    close();
  });
});

function withResolver(): { readonly promise: Promise<boolean>; resolve(value: boolean): void } {
  let resolve: (value: boolean) => void = () => {};
  const promise = new Promise<boolean>((done) => (resolve = done));
  return { promise, resolve };
}

async function textOf(message: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of message) text += String(piece);
  return text;
}

/** `fetch` does not send these headers. */
async function fetchWith(
  url: string,
  method: string,
  headers: Record<string, string>,
): Promise<{ readonly status: number; readonly body: string }> {
  const sent = httpRequest(url, { method, headers: { ...headers, "content-type": "application/json" } });
  sent.end(method === "POST" ? JSON.stringify({ model: "scripted", input: "x" }) : undefined);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: await textOf(response) };
}
