import { connect } from "node:net";
import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/app/create-server.ts";
import type { TruewireServer } from "../../src/app/create-server.ts";
import { answer, asked, ScriptedEngine, sleep, until } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";

let server: TruewireServer;
let engine: ScriptedEngine;

beforeEach(async () => {
  engine = new ScriptedEngine(async function* (request) {
    if (asked(request) === "slow") await sleep(200);
    yield* answer([asked(request)]);
  });
  server = await createServer({
    ...serving(engine),
    port: 0,
    logLevel: "silent",
    headerTimeout: "400ms",
    requestTimeout: "800ms",
    idleTimeout: "500ms",
    bodyLimit: "64KiB",
  });
});
afterEach(() => server.close(0));

/** A bare connection, and everything that came over it. */
async function connection(): Promise<{ socket: Socket; text: () => string; closed: Promise<void> }> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  let text = "";
  socket.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  await new Promise<void>((resolve) => socket.on("connect", () => resolve()));
  return { socket, text: () => text, closed };
}

function request(content: string, more = ""): string {
  const body = JSON.stringify({ model: "scripted", messages: [{ role: "user", content }] });
  return [
    "POST /v1/chat/completions HTTP/1.1",
    "Host: x",
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(more === "" ? [] : [more]),
    "",
    body,
  ].join("\r\n");
}

/** The JSON body behind the last header block. */
function lastBody(text: string): unknown {
  return JSON.parse(text.slice(text.lastIndexOf("\r\n\r\n") + 4));
}

describe("connections", () => {
  test.each([
    ["no HTTP at all", "hello there\r\n\r\n"],
    ["a bad header", "GET /v1/models HTTP/1.1\r\nbad header\r\n\r\n"],
    ["two Host headers", "GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"],
    [
      "a body that is packed on its way",
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ],
    ["a bad length", "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n"],
    [
      "length and chunks at once",
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["a bad chunk", "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
  ])("%s is a 400 in OpenAI's shape, and the end of the connection", async (_, bytes) => {
    const { socket, text, closed } = await connection();
    socket.write(bytes);
    await closed;
    expect(text()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(text()).toMatch(/x-request-id: req_/);
    expect(lastBody(text())).toMatchObject({ error: { type: "invalid_request_error", param: null } });
  });

  test("headers beyond all measure are a 431", async () => {
    const { socket, text, closed } = await connection();
    socket.write(`GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Large: ${"x".repeat(40_000)}\r\n\r\n`);
    await closed;
    expect(text()).toMatch(/^HTTP\/1\.1 431 /);
    expect(lastBody(text())).toHaveProperty("error.message");
  });

  test("headers that do not come in time are a 408", async () => {
    const { socket, text, closed } = await connection();
    socket.write("GET /v1/models HTTP/1.1\r\nHost:");
    await closed;
    expect(text()).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    expect(lastBody(text())).toMatchObject({ error: { message: "The request was not complete in time." } });
  });

  test("a body that does not come in time is a 408, and nothing is left open", async () => {
    const { socket, text, closed } = await connection();
    socket.write(request("never").slice(0, -5));
    await closed;
    expect(text()).toMatch(/^HTTP\/1\.1 408 /);
    expect(engine.requests).toEqual([]);
  });

  test("an idle connection is closed", async () => {
    const { socket, text, closed } = await connection();
    socket.write(request("once"));
    await closed;
    expect(lastBody(text())).toMatchObject({ choices: [{ message: { content: "once" } }] });
  });

  test("requests in a row over one connection (pipelining) are answered in their order", async () => {
    const { socket, text } = await connection();
    const words = ["slow", "two", "three", ...Array.from({ length: 20 }, (_, at) => `word${at}`)];
    socket.write(words.map((word) => request(word)).join(""));
    await until(() => text().includes('"word19"'), "the last is answered");
    expect([...text().matchAll(/"content":"(\w+)"/g)].map(([, word]) => word)).toEqual(words);
    socket.destroy();
  });

  test("a client that leaves with requests still waiting in the connection cancels them all", async () => {
    const endless = new ScriptedEngine(async function* (_, signal) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      yield* answer([]);
    });
    const other = await createServer({ ...serving(endless), port: 0, logLevel: "silent" });
    const { hostname, port } = new URL(other.url);
    const socket = connect(Number(port), hostname);
    socket.write([request("one"), request("two"), request("three")].join(""));
    await until(() => endless.running === 3, "three are running");
    socket.destroy();
    await until(() => endless.running === 0 && endless.aborted === 3, "three were cancelled");
    await other.close(0);
  });

  test("a client that is still sending when its body is refused gets to read why", async () => {
    const { socket, text, closed } = await connection();
    const length = 4 * 1024 * 1024;
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`,
    );
    for (let sent = 0; sent < length; sent += 65_536) {
      if (!socket.write("x".repeat(65_536))) await new Promise((resolve) => socket.once("drain", resolve));
    }
    await until(() => text().includes("request_too_large"), "the refusal has arrived");
    expect(text()).toMatch(/^HTTP\/1\.1 413 /);
    await closed;
  });

  test("a client that leaves while sending its request is no error of the server", async () => {
    for (const cut of [20, 60, 150]) {
      const { socket, closed } = await connection();
      socket.write(request("gone").slice(0, cut));
      await sleep(20);
      socket.destroy();
      await closed;
    }
    const { socket, text } = await connection();
    socket.write(request("next"));
    await until(() => text().includes('"next"'), "the next is answered");
    socket.destroy();
    expect(engine.requests).toHaveLength(1);
  });

  test("HTTP/1.0 without keep-alive is answered and closed", async () => {
    const { socket, text, closed } = await connection();
    socket.write(request("old").replace("HTTP/1.1", "HTTP/1.0"));
    await closed;
    expect(lastBody(text())).toMatchObject({ choices: [{ message: { content: "old" } }] });
  });
});
