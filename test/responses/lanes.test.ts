import { afterEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { idOf, said, SocketClient } from "../support/response-socket.ts";
import { answer, asked, failed, ScriptedEngine, until } from "../support/scripted-engine.ts";
import type { Script } from "../support/scripted-engine.ts";
import { json, serving } from "../support/transports.ts";

const servers: TruewireServer[] = [];
const clients: SocketClient[] = [];
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.terminate();
  await Promise.all(servers.splice(0).map((server) => server.close(0)));
});

async function serve(script: Script, config: TruewireConfig = {}): Promise<[string, ScriptedEngine]> {
  const engine = new ScriptedEngine(script);
  // A model that says what it has used has lanes.
  Object.assign(engine.handlers, { usage: async () => null });
  const server = await createServer({ port: 0, logLevel: "silent", ...serving(engine, config) });
  servers.push(server);
  return [server.url, engine];
}

async function connect(url: string): Promise<SocketClient> {
  const client = new SocketClient(url);
  clients.push(client);
  return client.opened();
}

/** Answers that wait until the test lets them end, by the text that was asked. */
class Gates {
  readonly #open = new Map<string, () => void>();
  readonly script: Script = (request) => this.#answer(request);

  async *#answer(
    request: GenerationRequest,
  ): AsyncGenerator<ReturnType<typeof answer> extends Generator<infer B> ? B : never> {
    const [first, ...rest] = answer([`${asked(request)}.`, "end"]);
    if (first) yield first;
    await new Promise<void>((resolve) => this.#open.set(asked(request), resolve));
    yield* rest;
  }

  get waiting(): string[] {
    return [...this.#open.keys()];
  }

  open(text: string): void {
    this.#open.get(text)?.();
    this.#open.delete(text);
  }
}

const count: Script = ({ prompt }) => answer([`${prompt.kind === "chat" ? prompt.messages.length : 0}`]);
const ended = (client: SocketClient, lane: string | null): number =>
  client.ofLane(lane).filter(({ type }) => type === "response.completed" || type === "error").length;

describe("lanes of a WebSocket", () => {
  test("run in parallel; each event repeats the lane's id, and the default lane has none", async () => {
    const gates = new Gates();
    const [url, engine] = await serve(gates.script);
    const client = await connect(url);
    for (const [stream_id, input] of [
      ["a", "1"],
      ["b.-_9", "2"],
      [undefined, "3"],
    ])
      client.send({ stream_id, input });
    await until(() => engine.running === 3, "all run");
    for (const text of ["3", "2", "1"]) gates.open(text);
    await until(() => client.events.filter(({ type }) => type === "response.completed").length === 3, "all end");
    for (const [lane, text] of [
      ["a", "1.end"],
      ["b.-_9", "2.end"],
      [null, "3.end"],
    ] as const) {
      const events = client.ofLane(lane);
      expect(said(events)).toBe(text);
      expect(events.map(({ sequence_number: number }) => number)).toEqual([...events.keys()]);
    }
    expect(client.ofLane("a")).toHaveLength(client.ofLane(null).length);
  });

  // Deltas are written by templates, all other events by their schemas.
  test.each(["lean", "exact"])("the id follows the sequence number, in profile %s", async (profile) => {
    const [url] = await serve(
      () => [
        [
          { type: "start", choice: 0 },
          { type: "reasoning-delta", choice: 0, text: "Hm." },
        ],
        ...answer(["Hi"]),
      ],
      { wire: profile as "lean" },
    );
    const client = await connect(url);
    await client.answer({ stream_id: "a", input: "x", reasoning: { summary: "auto" } });
    expect(client.texts.length).toBeGreaterThan(10);
    for (const text of client.texts) expect(text).toMatch(/"sequence_number":\d+,"stream_id":"a"/);
    expect(client.texts.find((text) => text.includes("summary_text.delta"))).toMatch(
      /"sequence_number":\d+,"stream_id":"a","summary_index":0\}$/,
    );
  });

  test("requests of one lane run in the order in which they came", async () => {
    const gates = new Gates();
    const [url, engine] = await serve(gates.script);
    const client = await connect(url);
    for (const input of ["1", "2", "3"]) client.send({ stream_id: "a", input });
    for (const input of ["1", "2", "3"]) {
      await until(() => gates.waiting.includes(input), "it runs");
      expect([engine.running, engine.requests.length]).toEqual([1, Number(input)]);
      gates.open(input);
    }
    await until(() => ended(client, "a") === 3, "all end");
    expect(said(client.events)).toBe("1.end2.end3.end");
  });

  test("16 run, more wait without an error; the 33rd lane is refused, and the default lane is not counted", async () => {
    const gates = new Gates();
    const [url, engine] = await serve(gates.script);
    const client = await connect(url);
    client.send({ input: "0" });
    for (let at = 1; at <= 33; at++) client.send({ stream_id: `b${at}`, input: `${at}` });
    await until(() => engine.running === 16 && ended(client, "b33") === 1, "16 run");
    expect(client.texts.filter((text) => text.includes('"error","status"'))).toEqual([
      '{"type":"error","status":400,"stream_id":"b33","error":{"type":"invalid_request_error","code":"websocket_stream_limit_reached","message":"This WebSocket connection has reached its maximum number of distinct stream IDs (32). Reuse an existing stream_id or open a new WebSocket connection.","param":"stream_id"}}',
    ]);
    expect(engine.requests).toHaveLength(16);
    gates.open("3");
    await until(() => gates.waiting.includes("16"), "the 17th runs");
    await until(() => {
      for (const text of gates.waiting) gates.open(text);
      return client.events.filter(({ type }) => type === "response.completed").length === 33;
    }, "all end");
  });

  test("an invalid id, and the limit of the queue, are refused in words", async () => {
    const gates = new Gates();
    const [url] = await serve(gates.script);
    const client = await connect(url);
    for (const id of ["", "a b", "x".repeat(257), 7, ["a"], { toString: 1 }]) {
      client.texts.length = 0;
      client.send({ stream_id: id, input: "x" });
      await until(() => client.texts.length > 0, "it is refused");
      expect(client.texts).toEqual([
        `{"type":"error","status":400,"error":{"type":"invalid_request_error","code":"invalid_stream_id","message":"The 'stream_id' field must be a non-empty string with at most 256 characters and may only contain letters, numbers, underscores, hyphens, and periods.","param":"stream_id"}}`,
      ]);
    }
    for (let at = 0; at < 258; at++) client.send({ stream_id: "a", input: "x" });
    await until(() => ended(client, "a") === 1, "one is refused");
    const refused = client.ofLane("a").find(({ type }) => type === "error");
    expect(refused).toMatchObject({ status: 429, error: { code: "websocket_queue_full" } });
  });

  test("a response that is not stored is continued in its lane and forked to others; errors name their lane", async () => {
    const [url] = await serve(count);
    const client = await connect(url);
    const first = idOf(await client.answer({ stream_id: "a", input: "x", store: false }));
    const next = { input: "y", store: false, previous_response_id: first };
    expect(said(await client.answer({ stream_id: "b", ...next }))).toBe("3");
    expect(said(await client.answer({ ...next }))).toBe("3");
    expect(said(await client.answer({ stream_id: "a", ...next }))).toBe("3");
    // A failed fork leaves the response to its lane; a failed turn of its own lane does not.
    const wrong = [{ type: "function_call_output", call_id: "call_x", output: "y" }];
    const [refused] = await client.answer({ stream_id: "b", ...next, input: wrong });
    expect(refused).toMatchObject({ status: 400, stream_id: "b" });
    expect(said(await client.answer({ stream_id: "a", ...next }))).toBe("3");
    await client.answer({ stream_id: "a", ...next, input: wrong });
    client.texts.length = 0;
    await client.answer({ stream_id: "a", ...next });
    expect(client.texts).toEqual([
      `{"type":"error","status":400,"stream_id":"a","error":{"type":"invalid_request_error","code":"previous_response_not_found","message":"Previous response with id '${first}' not found.","param":"previous_response_id"}}`,
    ]);
  });

  // Only requests that could not be read ended the conversation of a connection.
  test("a failure of the engine ends the lane's conversation, too", async () => {
    let fails = false;
    const [url] = await serve((request) => (fails ? [[failed("upstream-error")]] : [...answer([asked(request)])]));
    const client = await connect(url);
    const first = idOf(await client.answer({ stream_id: "a", input: "x", store: false }));
    fails = true;
    const next = { input: "y", store: false, previous_response_id: first };
    expect((await client.answer({ stream_id: "b", ...next })).at(-1)).toMatchObject({ status: 500, stream_id: "b" });
    expect((await client.answer({ stream_id: "a", ...next })).at(-1)).toMatchObject({ status: 500 });
    fails = false;
    expect((await client.answer({ stream_id: "a", ...next })).at(-1)?.error?.code).toBe("previous_response_not_found");
  });

  test("a client that leaves cancels all lanes, and what waits never runs", async () => {
    const gates = new Gates();
    const [url, engine] = await serve(async function* (request, signal) {
      yield* gates.script(request, signal);
    });
    const client = await connect(url);
    for (let at = 0; at < 40; at++) client.send({ stream_id: `s${at % 20}`, input: `${at}` });
    await until(() => engine.running === 16, "16 run");
    client.socket.terminate();
    await until(() => engine.aborted === 16, "all are cancelled");
    for (const text of gates.waiting) gates.open(text);
    await until(() => engine.running === 0, "the engine is free");
    expect(engine.requests).toHaveLength(16);
  });

  test("a server that stops lets what runs end, and refuses what waits", async () => {
    const gates = new Gates();
    const [url, engine] = await serve(gates.script);
    const client = await connect(url);
    for (const [stream_id, input] of [
      ["a", "1"],
      ["b", "2"],
      ["a", "3"],
    ])
      client.send({ stream_id, input });
    await until(() => engine.running === 2, "two run");
    const closing = servers.pop()?.close(20_000);
    await until(() => ended(client, "a") === 1, "the third is refused");
    expect(client.ofLane("a").at(-1)).toMatchObject({ status: 503, error: { code: "shutting_down" } });
    gates.open("1");
    gates.open("2");
    await until(() => client.closed !== undefined, "the connection is closed");
    expect([said(client.ofLane("a")), said(client.ofLane("b"))]).toEqual(["1.end", "2.end"]);
    await closing;
  });

  // An engine that yields without waiting ran on after its client had left: the connection never came to close.
  test("a client that does not read stops all lanes, and what they have not sent stays small", async () => {
    const [url, engine] = await serve(function* () {
      for (let at = 0; at < 1e6; at++) yield [{ type: "text-delta", choice: 0, text: "x".repeat(10_000) }];
    });
    const client = await connect(url);
    client.socket.pause();
    for (let at = 0; at < 16; at++) client.send({ stream_id: `s${at}`, input: "x" });
    await until(() => engine.running === 16, "all run");
    let before = -1;
    await until(() => {
      const isStill = engine.pulled === before;
      before = engine.pulled;
      return isStill && engine.pulled > 16;
    }, "nothing is pulled");
    // What the operating system takes of a local connection, and 256 KiB, in batches of 10 KB.
    expect(engine.pulled).toBeLessThan(4000);
  });

  test("stream_id is no parameter of POST", async () => {
    const [url] = await serve(count);
    const post = (wire: string): Promise<Response> => {
      const init = json({ model: "scripted", input: "x", stream_id: "a" });
      return fetch(`${url}/v1/responses`, { ...init, headers: { ...init.headers, "x-truewire-wire": wire } });
    };
    const refused = await post("exact");
    expect([refused.status, await refused.json()]).toEqual([
      400,
      {
        error: {
          message: "Unknown parameter: 'stream_id'.",
          type: "invalid_request_error",
          param: "stream_id",
          code: "unknown_parameter",
        },
      },
    ]);
    const taken = await post("lean");
    expect(taken.status).toBe(200);
    expect(JSON.stringify(await taken.json())).not.toContain("stream_id");
  });
});
