import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { event, role, startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";

// Running out of file descriptors is a 503 and a log line, on both sides, and no crash.
const limit = 256;

interface Client {
  readonly socket: Socket;
  text: string;
  closed: boolean;
}

async function dial(url: string): Promise<Client> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const client: Client = { socket, text: "", closed: false };
  socket.setEncoding("utf8").on("data", (piece: string) => (client.text += piece));
  socket.on("error", () => {}).on("close", () => (client.closed = true));
  await once(socket, "connect");
  return client;
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let i = 0; i < 1500; i++) {
    if (holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`It did not come about that ${what}`);
}

const body = JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "Hi" }] });
const request = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

describe.skipIf(process.platform === "win32")("out of file descriptors", () => {
  let upstream: ScriptedServer;
  let truewire: RunningTruewire;
  let clients: Client[] = [];

  beforeAll(async () => {
    // Answers begin and stay open, so that every request keeps its descriptor.
    upstream = await startScripted((response) => response.write(role + event({ content: "Hi" })));
    truewire = await startTruewire(["--log-level", "warn", upstream.url], { openFiles: limit });
  });

  afterAll(async () => {
    for (const { socket } of clients) socket.destroy();
    await truewire.stop();
    await upstream.close();
  });

  test("a new connection is refused with a 503 while the others are kept", async () => {
    for (let i = 0; i < limit; i++) clients.push(await dial(truewire.url));
    await until("connections are refused", () => clients.some(({ closed }) => closed));
    const refused = clients.filter(({ closed }) => closed);
    for (const { text } of refused) {
      expect(text).toMatch(/^HTTP\/1\.1 503 /);
      expect(text).toMatch(/\r\nRetry-After: \d/);
      expect(JSON.parse(text.slice(text.indexOf("\r\n\r\n")))).toMatchObject({
        error: { type: "server_error", code: "too_many_connections" },
      });
    }
    clients = clients.filter(({ closed }) => !closed);
    expect(clients.length).toBeGreaterThan(limit / 2);
    expect(truewire.stderr()).toContain("no file descriptors left for new connections");
  });

  test("a request whose upstream cannot be connected to for want of one is answered with a 503", async () => {
    for (const { socket } of clients) socket.write(request);
    await until("all are answered", () => clients.every(({ text }) => text.includes("\r\n\r\n")));
    // The word of a connection's refusal may have been on its way.
    clients = clients.filter(({ text }) => !text.includes("too_many_connections"));
    const served = clients.filter(({ text }) => text.startsWith("HTTP/1.1 200 "));
    const refused = clients.filter(({ text }) => text.startsWith("HTTP/1.1 503 "));
    expect(served.length).toBeGreaterThan(0);
    expect(refused.length).toBeGreaterThan(0);
    expect(served.length + refused.length).toBe(clients.length);
    for (const { text } of refused) {
      expect(JSON.parse(text.slice(text.indexOf("\r\n\r\n")))).toMatchObject({
        error: { type: "server_error", message: expect.stringContaining("may open no more files") },
      });
    }
    expect(truewire.stderr()).toMatch(/"level":50.*may open no more files/);
  });

  test("when they are free again, all is well", async () => {
    for (const { socket } of clients) socket.destroy();
    for (let attempt = 0; ; attempt++) {
      const client = await dial(truewire.url);
      client.socket.write(request);
      await until("it is answered", () => client.text.includes("\r\n\r\n"));
      client.socket.destroy();
      if (client.text.startsWith("HTTP/1.1 200 ")) break;
      expect(attempt).toBeLessThan(100);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(truewire.process.exitCode).toBeNull();
  });
});
