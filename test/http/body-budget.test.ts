import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { createServer } from "../../src/serve/app/create-server.ts";
import { answer, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { chat, serving, transports } from "../support/transports.ts";
import type { Api } from "../support/transports.ts";

/** Answers a request of more than 10,000 characters when `release` is called; any other at once. */
function heldEngine(): { engine: ScriptedEngine; release: () => void } {
  const held: (() => void)[] = [];
  let isOpen = false;
  const engine = new ScriptedEngine(async function* (request) {
    if (!isOpen && JSON.stringify(request.prompt).length > 10_000)
      await new Promise<void>((resolve) => held.push(resolve));
    yield* answer(["Hi"]);
  });
  const release = (): void => {
    isOpen = true;
    for (const resolve of held) resolve();
  };
  return { engine, release };
}

const large = "x".repeat(400_000);

// 110 bodies of 30 MB at once took 8.3 GB, and 40 of them ended a server with a heap of 1 GB: there was no bound on their sum.
describe.each(transports)("the memory for request bodies through $name", ({ open }) => {
  const { engine, release } = heldEngine();
  let api: Api;
  beforeEach(async () => {
    api = await open(serving(engine, { bodyBudget: "1MiB" }));
  });
  afterEach(() => api.close());

  const ask = async (content: string): Promise<number> => {
    const response = await api.fetch("/v1/chat/completions", chat(content));
    await response.text();
    return response.status;
  };

  test("large ones are answered one after the other, and small ones at once", async () => {
    const begun = engine.requests.length;
    const answers = Promise.all(Array.from({ length: 6 }, () => ask(large)));
    await until(() => engine.requests.length > begun, "the first large request is being answered");
    expect(await Promise.all(Array.from({ length: 20 }, () => ask("Hi")))).toEqual(Array(20).fill(200));
    // The others have not reached the engine.
    expect(engine.requests.length - begun).toBe(21);
    release();
    expect(await answers).toEqual(Array(6).fill(200));
  });
});

describe("the memory for request bodies", () => {
  test("when there is none in time, the answer is 503 with Retry-After", async () => {
    const { engine, release } = heldEngine();
    const server = await createServer({ port: 0, logLevel: "silent", ...serving(engine, { bodyBudget: "1MiB" }) });
    const post = (): Promise<Response> => fetch(`${server.url}/v1/chat/completions`, chat(large));
    const first = post();
    await until(() => engine.requests.length === 1, "the first request is being answered");
    const refused = await post();
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("5");
    expect(await refused.json()).toMatchObject({ error: { code: "request_bodies_full" } });
    release();
    expect((await first).status).toBe(200);
    expect((await post()).status).toBe(200);
    await server.close(0);
  });

  test("a message of a WebSocket waits, too", async () => {
    const { engine, release } = heldEngine();
    const server = await createServer({ port: 0, logLevel: "silent", ...serving(engine, { bodyBudget: "1MiB" }) });
    const first = fetch(`${server.url}/v1/chat/completions`, chat(large));
    await until(() => engine.requests.length === 1, "the first request is being answered");
    const sockets = await Promise.all(
      [large, "Hi"].map(async (input) => {
        const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`);
        await once(socket, "open");
        const end = new Promise<string>((resolve) =>
          socket.on("message", (data: Buffer) => {
            const { type } = JSON.parse(data.toString()) as { type: string };
            if (/^(error|response\.completed)$/.test(type)) resolve(type);
          }),
        );
        socket.send(JSON.stringify({ type: "response.create", model: "scripted", input }));
        return { socket, end };
      }),
    );
    expect(await sockets[1]?.end).toBe("response.completed");
    expect(engine.requests).toHaveLength(2);
    release();
    expect(await sockets[0]?.end).toBe("response.completed");
    expect((await first).status).toBe(200);
    for (const { socket } of sockets) socket.close();
    await server.close(0);
  });
});
