import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { answer, failed, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { chat, events, serving } from "../support/transports.ts";

describe("stopping", () => {
  test("what runs finishes within the grace period; nothing new is taken", async () => {
    let go: () => void = () => {};
    const waiting = new Promise<void>((resolve) => (go = resolve));
    const engine = new ScriptedEngine(async function* () {
      const [first, ...rest] = answer(["Hello", " world"]);
      if (first) yield first;
      await waiting;
      yield* rest;
    });
    const server = await createServer({ ...serving(engine), port: 0, logLevel: "silent" });
    const response = await fetch(`${server.url}/v1/chat/completions`, chat("x", { stream: true }));
    const closing = server.close(20_000);
    await expect(fetch(`${server.url}/v1/models`)).rejects.toThrow();
    go();
    const chunks = events(await response.text());
    expect(chunks.at(-1)).toBe("data: [DONE]");
    expect(JSON.stringify(chunks)).toContain(" world");
    await closing;
    expect(engine.closedWith).toBe(20_000);
  });

  test("what does not finish in time is told so by its engine, and the server is gone soon after", async () => {
    const engine = new ScriptedEngine(async function* () {
      const [first] = answer(["Hello"]);
      if (first) yield first;
      await until(() => engine.state === "closed", "the grace period is over");
      yield [failed("shutdown", { message: "The server is stopping.", status: 503 })];
    });
    const server = await createServer({ ...serving(engine), port: 0, logLevel: "silent" });
    const response = await fetch(`${server.url}/v1/chat/completions`, chat("x", { stream: true }));
    const closing = server.close(100);
    const chunks = events(await response.text());
    expect(chunks.slice(-2)).toMatchObject([{ error: { message: "The server is stopping." } }, "data: [DONE]"]);
    await closing;
  });

  test("an engine that never ends does not keep the server from stopping", async () => {
    const engine = new ScriptedEngine(async function* () {
      const [first] = answer(["Hello"]);
      if (first) yield first;
      await new Promise(() => {});
    });
    const server = await createServer({ ...serving(engine), port: 0, logLevel: "silent" });
    const response = await fetch(`${server.url}/v1/chat/completions`, chat("x", { stream: true }));
    await server.close(50);
    await expect(response.text()).rejects.toThrow();
  });

  test("a request on a connection that is still open is answered 503", async () => {
    let go: () => void = () => {};
    const waiting = new Promise<void>((resolve) => (go = resolve));
    const engine = new ScriptedEngine(async function* () {
      await waiting;
      yield* answer(["late"]);
    });
    const server = await createServer({ ...serving(engine), port: 0, logLevel: "silent" });
    const { hostname, port } = new URL(server.url);
    const { connect } = await import("node:net");
    const [socket, other] = [connect(Number(port), hostname), connect(Number(port), hostname)];
    // A connection in whose middle of a request the server stops is not closed.
    other.write("GET /v1/models HTTP/1.1\r\n");
    let text = "";
    socket.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    const { body } = chat("x");
    const request = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(String(body))}\r\n\r\n${String(body)}`;
    socket.write(request);
    await until(() => engine.running === 1, "the first runs");
    const closing = server.close(10_000);
    // The connection is closed after the first answer: the second request comes before it, as another connection's shows, which comes later.
    await new Promise((sent) => socket.write(request, sent));
    other.write("Host: x\r\n\r\n");
    await once(other, "data");
    go();
    await until(() => text.includes("shutting_down"), "the second is refused");
    expect(text).toMatch(/"late"[^]*HTTP\/1\.1 503 /);
    await closing;
    socket.destroy();
    other.destroy();
  });
});
