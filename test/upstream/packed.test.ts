import { brotliCompressSync, createGzip, deflateSync, gzipSync, constants } from "node:zlib";
import { describe, expect, test } from "vitest";
import { ask, post, startGateway } from "./gateway.ts";
import { bodyOf, done, event, finish, role, say, startScripted, streamOf } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";
import { strictMessage } from "./strict-client.ts";
import { closeAfterTest } from "../support/close-after-test.ts";

async function upstream(...args: Parameters<typeof startScripted>): Promise<ScriptedServer> {
  const server = await startScripted(...args);
  closeAfterTest(() => server.close());
  return server;
}

async function gateway(...args: Parameters<typeof startGateway>): ReturnType<typeof startGateway> {
  const server = await startGateway(...args);
  closeAfterTest(() => server.close(0));
  return server;
}

/** The packed bytes stood in the error message. */
describe("an upstream that packs what nobody asked it to pack", () => {
  const packers = { gzip: gzipSync, "x-gzip": gzipSync, br: brotliCompressSync, deflate: deflateSync };

  test.each(Object.entries(packers))("with %s is read: streams, bodies, errors", async (encoding, pack) => {
    const source = await upstream((response, { stream, user }) => {
      response.setHeader("content-encoding", encoding);
      if (user === "bad") response.writeHead(422).end(pack('{"error":{"message":"Not so."}}'));
      else response.end(pack(stream === true ? streamOf("Grün") : bodyOf("Grün")));
    });
    const truewire = await gateway(source.url);
    expect(strictMessage((await ask(truewire, { stream: true })).text)).toMatchObject({ text: "Grün", error: null });
    expect((await ask(truewire)).text).toContain("Grün");
    const { status, text } = await ask(truewire, { user: "bad" });
    expect(status).toBe(422);
    expect(text).toContain("Not so.");
  });

  test("in a stream is read as it comes", async () => {
    let more: () => void = () => {};
    const source = await upstream((response) => {
      response.setHeader("content-encoding", "gzip");
      const packing = createGzip({ flush: constants.Z_SYNC_FLUSH });
      packing.pipe(response);
      packing.write(role + event({ content: "Hello" }));
      more = () => packing.end(finish + done);
    });
    const response = await post(await gateway(source.url), { stream: true });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    const decoder = new TextDecoder();
    while (!text.includes("Hello")) text += decoder.decode((await reader.read()).value, { stream: true });
    more();
    for (let step = await reader.read(); !step.done; step = await reader.read()) text += decoder.decode(step.value);
    expect(strictMessage(text)).toMatchObject({ text: "Hello", finish: "stop" });
  });

  test("to a gigabyte of answer fills no memory: it is held back, and cut at the limit", async () => {
    const source = await upstream((response) => {
      response.setHeader("content-encoding", "gzip");
      response.end(gzipSync(`{"choices":[{"message":{"content":"${"x".repeat(200 * 2 ** 20)}"}}]}`));
    });
    const { status, text } = await ask(await gateway(source.url, { answerLimit: "1MiB", retries: 0 }));
    expect(status).toBe(502);
    expect(text).toContain("longer than 1048576 bytes");
  });

  test.each([
    ["zstd", "anything"],
    ["gzip", "this is no gzip"],
    ["gzip", gzipSync(bodyOf("Hello")).subarray(0, 30)],
  ])("in a way that cannot be unpacked (%s) is a 502 that says so", async (encoding, bytes) => {
    const source = await upstream((response) => response.setHeader("content-encoding", encoding).end(bytes));
    const { status, text } = await ask(await gateway(source.url, { retries: 0 }));
    expect(status).toBe(502);
    expect(text).toContain("cannot be read");
  });
});

describe("an upstream's error", () => {
  test("of 20 MB is told in a few kilobytes, whatever it stands in", async () => {
    const error = JSON.stringify({ error: { message: "x".repeat(8_000_000), code: "y".repeat(8_000_000) } });
    const source = await upstream((response, { stream, user }) => {
      if (user === "ok") response.end(stream === true ? `data: ${error}\n\n` : error);
      else response.writeHead(400).end(error);
    });
    const truewire = await gateway(source.url, { retries: 0 });
    for (const user of ["ok", "bad"]) {
      for (const stream of [true, false])
        expect((await ask(truewire, { stream, user })).text.length).toBeLessThan(10_000);
    }
  });

  test("loses its control characters", async () => {
    const message = "\u001b[31mred\u001b]0;title\u0007 \u009b1m\u0000line\nnext";
    const source = await upstream((response) => response.writeHead(400).end(JSON.stringify({ error: { message } })));
    const { error } = JSON.parse((await ask(await gateway(source.url))).text) as { error: { message: string } };
    expect(error.message).toBe("[31mred]0;title 1mline\nnext");
  });
});

/** Where every reused connection was reset, 3,990 of 10,000 requests failed. */
test("a connection that the server closes as idle costs no request, without any retries", async () => {
  const connections = new WeakMap<object, number>();
  let lost = 0;
  const source = await upstream((response, body) => {
    const { socket } = response;
    const served = connections.get(socket ?? {}) ?? 0;
    if (socket) connections.set(socket, served + 1);
    if (served > 0) {
      lost++;
      socket?.resetAndDestroy();
    } else say(response, body, "Hello");
  });
  const truewire = await gateway(source.url, { retries: 0, models: { m: "m" } });
  for (let i = 0; i < 40; i++) expect((await ask(truewire, { stream: i % 2 === 0 })).status).toBe(200);
  expect(lost).toBeGreaterThan(10);
});

test("a request that breaks on a new connection is not sent twice", async () => {
  const source = await upstream((response) => response.destroy());
  const truewire = await gateway(source.url, { retries: 0, models: { m: "m" } });
  expect((await ask(truewire)).status).toBe(502);
  expect(source.requests).toHaveLength(1);
});
