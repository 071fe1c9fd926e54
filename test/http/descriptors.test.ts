import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectRow } from "../faults/fault.ts";
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

if (process.platform === "win32") console.log("skipped: the limit is set with ulimit");
describe.skipIf(process.platform === "win32")("out of file descriptors", () => {
  let upstream: ScriptedServer;
  let truewire: RunningTruewire;
  let clients: Client[] = [];

  beforeAll(async () => {
    // Answers begin and stay open, so that every request keeps its descriptor.
    upstream = await startScripted((response) => response.write(role + event({ content: "Hi" })));
    truewire = await startTruewire(["--log-level", "warn", upstream.url], { openFiles: limit });
  });

  const pause = (): boolean => truewire.process.kill("SIGSTOP");
  const resume = (): boolean => truewire.process.kill("SIGCONT");

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
    const outcomes = new Set(
      refused.map(({ text }) => `${text.slice(9, 12)} \`too_many_connections\` with \`Retry-After\``),
    );
    await expectRow("no file descriptors are left (`ulimit -n`)", {
      clients: [`a new connection ${[...outcomes].join()}`],
      log: truewire.stderr,
    });
  });

  test("requests whose upstream cannot be connected to for want of one are answered with a 503, and nobody is left without a word", async () => {
    // Once in CI, some connections were still to be accepted when the requests came, and dialling the upstream took the descriptors to do
    // it with: the system's queue was cut off without an answer. So the last clients come while the server stands still.
    pause();
    const late = await Promise.all(Array.from({ length: 40 }, () => dial(truewire.url)));
    clients = clients.filter(({ closed }) => !closed);
    for (const { socket } of [...clients, ...late]) socket.write(request);
    resume();
    clients.push(...late);
    await until("all are answered", () => clients.every(({ text }) => text.includes("\r\n\r\n")));
    const served = clients.filter(({ text }) => text.startsWith("HTTP/1.1 200 "));
    const refused = clients.filter(({ text }) => text.startsWith("HTTP/1.1 503 "));
    expect(served.length).toBeGreaterThan(0);
    expect(served.length + refused.length).toBe(clients.length);
    const told = refused.map(({ text }) => {
      const { error } = JSON.parse(text.slice(text.indexOf("\r\n\r\n"))) as {
        error: { type: string; code: string | null; message: string };
      };
      expect(error.type).toBe("server_error");
      if (error.code === "too_many_connections") expect(text).toMatch(/\r\nRetry-After: \d/);
      else expect(error.message).toContain("may open no more files");
      return error.code;
    });
    expect(new Set(told)).toEqual(new Set(["too_many_connections", null]));
    await expect.poll(() => truewire.stderr()).toMatch(/"level":50.*may open no more files/);
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
