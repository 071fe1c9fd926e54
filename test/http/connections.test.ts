import { connect } from "node:net";
import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { answer, asked, type Batch, ScriptedEngine, sleep, until } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";

let server: TruewireServer;
let engine: ScriptedEngine;

/** Limits of time are only set where a test waits for one: a busy machine may be slower than a short one. */
function open(limits: {
  headerTimeout?: string;
  requestTimeout?: string;
  idleTimeout?: string;
}): Promise<TruewireServer> {
  return createServer({ ...serving(engine), port: 0, logLevel: "silent", bodyLimit: "64KiB", ...limits });
}

beforeEach(async () => {
  engine = new ScriptedEngine(async function* (request) {
    if (asked(request) === "slow") await sleep(200);
    yield* answer([asked(request)]);
  });
  server = await open({});
});
afterEach(() => server.close(0));

/** Serves with a short limit of time. */
async function serveWith(limits: Parameters<typeof open>[0]): Promise<void> {
  await server.close(0);
  server = await open(limits);
}

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

/**
 * Requests of which servers in front may see more, or less, than this one does. Source: RFC 9112, sections 2.2, 5.1, 5.2, 6.1 to 6.3 and
 * 7.1, and RFC 9110, section 8.6.
 */
const smuggled: readonly [what: string, bytes: string][] = (() => {
  const body = '{"model":"scripted"}';
  const size = body.length.toString(16);
  const post = (headers: string, sent = body): string =>
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n${sent}`;
  const chunks = `${size}\r\n${body}\r\n0\r\n\r\n`;
  const chunked = (sent: string): string => post("Transfer-Encoding: chunked", sent);
  return [
    ["lines that end without CR", "GET /health HTTP/1.1\nHost: x\n\n"],
    ["a header that ends without LF", "GET /health HTTP/1.1\r\nHost: x\rX-A: b\r\n\r\n"],
    ["a header on two lines (obs-fold)", "GET /health HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\n\r\n"],
    ["a coding on the next line (obs-fold)", post("Transfer-Encoding:\r\n chunked", chunks)],
    ["no Host at all", "GET /health HTTP/1.1\r\n\r\n"],
    ["two lengths", post(`Content-Length: ${body.length}\r\nContent-Length: 6`)],
    ["the same length twice", post(`Content-Length: ${body.length}\r\nContent-Length: ${body.length}`)],
    ["a length with a sign", post(`Content-Length: +${body.length}`)],
    ["chunks, then a length", post(`Transfer-Encoding: chunked\r\nContent-Length: ${body.length}`, chunks)],
    ["chunks twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", chunks)],
    ["a coding that only looks like chunks", post("Transfer-Encoding: xchunked", chunks)],
    ["chunks that are packed", post("Transfer-Encoding: chunked, gzip", chunks)],
    ["a coding with a control character", post("Transfer-Encoding: \u000bchunked", chunks)],
    ["a space before a colon", post("Transfer-Encoding : chunked", chunks)],
    ["chunks whose lines end without CR", chunked(chunks.replaceAll("\r\n", "\n"))],
    ["a chunk longer than it says", chunked(`${size}\r\n${body}0\r\n\r\n`)],
    ["a chunk of more bytes than there are numbers", chunked(`1000000000000000${size}\r\n${body}`)],
    ["a length behind the chunks", chunked(`${size}\r\n${body}\r\n0\r\nContent-Length: 5\r\n\r\n`)],
    ["a NUL in a header", "GET /health HTTP/1.1\r\nHost: x\r\nX-A: a\0b\r\n\r\n"],
  ];
})();

/** The JSON body behind the last header block. */
function lastBody(text: string): unknown {
  return JSON.parse(text.slice(text.lastIndexOf("\r\n\r\n") + 4));
}

describe("connections", () => {
  test.each([
    ["no HTTP at all", "hello there\r\n\r\n"],
    ["a bad header", "GET /v1/models HTTP/1.1\r\nbad header\r\n\r\n"],
    ["an absolute URL with another host than Host", "GET http://evil.example/health HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["an absolute URL without a host", "GET http:///health HTTP/1.1\r\nHost: x\r\n\r\n"],
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
    ...smuggled,
  ])("%s is a 400 in OpenAI's shape, and the end of the connection", async (_, bytes) => {
    const { socket, text, closed } = await connection();
    socket.write(bytes);
    await closed;
    // What is refused is not answered twice: a proxy in front might take the second answer for the next request's.
    expect(text().match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
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
    await serveWith({ headerTimeout: "400ms" });
    const { socket, text, closed } = await connection();
    socket.write("GET /v1/models HTTP/1.1\r\nHost:");
    await closed;
    expect(text()).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    expect(lastBody(text())).toMatchObject({ error: { message: "The request was not complete in time." } });
  });

  test("a body that does not come in time is a 408, and nothing is left open", async () => {
    await serveWith({ headerTimeout: "400ms", requestTimeout: "800ms" });
    const { socket, text, closed } = await connection();
    socket.write(request("never").slice(0, -5));
    await closed;
    expect(text()).toMatch(/^HTTP\/1\.1 408 /);
    expect(engine.requests).toEqual([]);
  });

  test("an idle connection is closed", async () => {
    await serveWith({ idleTimeout: "500ms" });
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
      await new Promise((sent) => socket.write(request("gone").slice(0, cut), sent));
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

  // The server writes the frames itself, and counts bytes, not characters. Long texts are written apart from their frames.
  const words = ["plain", "é ÿ", "€", "\u{1F600}", "", "mixed é€\u{1F600}", "plain again"];
  const longWords = ["plain ".repeat(2000), "é€\u{1F600}".repeat(2000), "short"];
  const whole = (said: readonly string[]): Batch[] => [[...answer(said)].flat()];
  test.each([
    ["event by event", words, [...answer(words)]],
    ["in long events", longWords, [...answer(longWords)]],
    ["in one short batch", words, whole(words)],
    ["in one long batch", longWords, whole(longWords)],
    ["in one long batch of ASCII", ["plain ".repeat(2000)], whole(["plain ".repeat(2000)])],
  ])("a stream is framed in chunks of the right size: %s", async (_, said, batches) => {
    engine = new ScriptedEngine(async function* () {
      for (const batch of batches) {
        yield batch;
        await new Promise(setImmediate);
      }
    });
    await server.close(0);
    server = await open({});
    const { socket, text, closed } = await connection();
    const body = JSON.stringify({ model: "scripted", messages: [{ role: "user", content: "x" }], stream: true });
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
    socket.write(`${head}\r\n${body}`);
    await until(() => text().endsWith("\r\n0\r\n\r\n"), "the first answer has ended");
    const first = text();
    // The connection is used again.
    socket.write(`${head}Connection: close\r\n\r\n${body}`);
    await closed;
    const answers = [first, text().slice(first.length)];
    for (const received of answers) {
      const split = received.indexOf("\r\n\r\n");
      expect(received.slice(0, split)).toMatch(/transfer-encoding: chunked/i);
      const { sizes, content } = unchunked(received.slice(split + 4));
      expect(sizes.at(-1)).toBe(0);
      expect(sizes.slice(0, -1)).not.toContain(0);
      const deltas = content.split("\n\n").flatMap((event) => {
        const data = event.slice("data: ".length);
        if (data === "" || data === "[DONE]") return [];
        const { choices } = JSON.parse(data) as { choices: { delta: { content?: string } }[] };
        return choices.map(({ delta }) => delta.content ?? "");
      });
      expect(deltas.join("")).toBe(said.join(""));
      expect(content).toMatch(/data: \[DONE\]\n\n$/);
    }
  });

  test("a stream over HTTP/1.0 has no chunks and ends with its connection", async () => {
    const { socket, text, closed } = await connection();
    const body = JSON.stringify({ model: "scripted", messages: [{ role: "user", content: "old é" }], stream: true });
    const length = Buffer.byteLength(body);
    socket.write(
      `POST /v1/chat/completions HTTP/1.0\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`,
    );
    await closed;
    const [head = "", content = ""] = text().split("\r\n\r\n");
    expect(head).not.toMatch(/transfer-encoding/i);
    expect(content).toMatch(/^data: \{/);
    expect(content).toContain("old é");
    expect(content).toMatch(/data: \[DONE\]\n\n$/);
  });
});

/** The content of a chunked body, with the size of each chunk in bytes. Throws an Error where a frame is wrong. */
function unchunked(body: string): { sizes: number[]; content: string } {
  const bytes = Buffer.from(body);
  const sizes: number[] = [];
  let content = "";
  for (let at = 0; at < bytes.length;) {
    const line = bytes.indexOf("\r\n", at);
    const size = Number.parseInt(bytes.toString("latin1", at, line), 16);
    const end = line + 2 + size;
    if (bytes.toString("latin1", end, end + 2) !== "\r\n") throw new Error(`a chunk of ${size} bytes does not end`);
    sizes.push(size);
    content += bytes.toString("utf8", line + 2, end);
    at = end + 2;
  }
  return { sizes, content };
}
