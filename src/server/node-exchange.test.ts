import { once } from "node:events";
import { createServer, get } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect } from "node:net";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { NodeExchange } from "./node-exchange.ts";

/** Serves on a free port with `answer`. */
async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close().closeAllConnections());
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

const texts = ["data: 1\n\n", "data: é€😀\n\n", "", "\r\n0\r\n\r\n", "x".repeat(70_000), "data: [DONE]\n\n"];

async function stream(exchange: NodeExchange): Promise<void> {
  exchange.open(200, { "content-type": "text/event-stream" });
  for (const text of texts.slice(0, -1)) await exchange.write(text);
  exchange.end(texts.at(-1) ?? "");
}

test("two pipelined streams are written as Node writes them, chunk by chunk", async () => {
  const received = async (isOwn: boolean): Promise<string> => {
    const port = await serve((request, response) => {
      response.sendDate = false;
      void stream(new NodeExchange(request, response, { isOwn }));
    });
    const socket = connect(port, "127.0.0.1").setEncoding("latin1");
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let all = "";
    for await (const text of socket) all += String(text);
    return all;
  };
  const own = await received(true);
  expect(own.split("data: [DONE]")).toHaveLength(3);
  expect(own).toBe(await received(false));
});

test("a write waits for a slow reader, and the wait ends when it reads on or leaves", async () => {
  for (const leaves of [false, true]) {
    let waited: Promise<void> | undefined;
    let stall = (): void => {};
    const stalled = new Promise<void>((resolve) => (stall = resolve));
    const port = await serve((request, response) => {
      const exchange = new NodeExchange(request, response, { isOwn: true });
      exchange.open(200, {});
      while (!waited) waited = exchange.write("x".repeat(100_000));
      stall();
      void waited.then(() => exchange.end("end"));
    });
    const answer = await new Promise<IncomingMessage>((resolve) => get({ port, host: "127.0.0.1" }, resolve));
    answer.on("error", () => {});
    await stalled;
    let body = "";
    if (leaves) answer.destroy();
    else for await (const bytes of answer) body += String(bytes);
    await waited;
    if (!leaves) expect(body.endsWith("xend")).toBe(true);
  }
});

test("a framework's own `write` sees every chunk", async () => {
  const seen: string[] = [];
  const port = await serve((request, response) => {
    const { write } = response;
    response.write = (text: string) => {
      seen.push(text);
      return write.call(response, text, "utf8");
    };
    void stream(new NodeExchange(request, response));
  });
  const answer = await new Promise<IncomingMessage>((resolve) => get({ port, host: "127.0.0.1" }, resolve));
  let body = "";
  for await (const text of answer.setEncoding("utf8")) body += String(text);
  expect(body).toBe(texts.join(""));
  expect(seen).toEqual(texts.slice(0, -1));
});
