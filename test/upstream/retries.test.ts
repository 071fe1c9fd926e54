import { createServer as createTcpServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { describe, expect, test } from "vitest";
import { selfSigned } from "../support/certificate.ts";
import { ask, startGateway } from "./gateway.ts";
import { say, startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { until } from "../support/scripted-engine.ts";

/** Who pays for the wait, and who multiplies the load: what is tried again inside, and what is the client's to decide. */

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

async function health(url: string): Promise<{ status: number; told: Record<string, unknown> }> {
  const response = await fetch(`${url}/health`);
  return { status: response.status, told: (await response.json()) as Record<string, unknown> };
}

const stream = { stream: true };

describe("a rate limit", () => {
  const limited = async (headers: Record<string, string>): Promise<ScriptedServer> =>
    upstream((response) => response.writeHead(429, headers).end('{"error":{"message":"slow down"}}'));

  /** It was waited out inside for 14 s, and the client's SDK, which would have waited properly, never saw it. */
  test.each<Record<string, string>>([{ "retry-after": "7" }, {}])(
    "of the only upstream goes to the client at once (%j)",
    async (headers) => {
      const source = await limited(headers);
      const truewire = await gateway(source.url);
      const answer = await ask(truewire, stream);
      expect(answer.status).toBe(429);
      expect(answer.headers.get("retry-after")).toBe(headers["retry-after"] ?? null);
      expect(source.requests).toHaveLength(1);
    },
  );

  test("of one of two is no matter: the other one answers", async () => {
    const source = await limited({ "retry-after": "7" });
    const other = await upstream((response, body) => say(response, body, "Hello"));
    const truewire = await gateway([source.url, other.url], { models: { m: "m" } });
    for (let i = 0; i < 4; i++) expect((await ask(truewire)).status).toBe(200);
  });
});

describe("an upstream that hangs", () => {
  /** It was asked three times, so a client waited three time-outs, and three generations ran. */
  test("is asked once, where there is no other", async () => {
    const source = await upstream(() => {});
    const truewire = await gateway(source.url, { timeouts: { firstEvent: "400ms" } });
    expect((await ask(truewire, stream)).status).toBe(504);
    expect(source.requests).toHaveLength(1);
  });

  test("costs one time-out, where there is another", async () => {
    const source = await upstream(() => {});
    const other = await upstream((response, body) => say(response, body, "Hello"));
    const truewire = await gateway([source.url, other.url], { models: { m: "m" }, timeouts: { firstEvent: "400ms" } });
    expect((await ask(truewire, stream)).status).toBe(200);
  });

  test("in its TLS handshake is called once", async () => {
    let calls = 0;
    const url = await listening(createTcpServer(() => calls++));
    const truewire = await gateway(`https://${url}/v1`, { models: { m: "m" }, timeouts: { connect: "500ms" } });
    const { status, text } = await ask(truewire);
    expect(status).toBe(504);
    expect(text).toContain("did not accept the connection in time");
    expect(calls).toBe(1);
  });
});

test("a server that does not speak TLS is called once, and told so", async () => {
  let calls = 0;
  const url = await listening(
    createTcpServer((socket) => {
      calls++;
      socket.on("error", () => {}).end("HTTP/1.1 400 Bad Request\r\n\r\n");
    }),
  );
  const truewire = await gateway(`https://${url}/v1`, { models: { m: "m" } });
  const { status, text } = await ask(truewire);
  expect(status).toBe(502);
  expect(text).toContain("does not answer in TLS as expected");
  expect(calls).toBe(1);
});

/** It was retried, and told as "closed the connection without an answer". */
test("a bad certificate is told as what it is, once", async ({ skip }) => {
  const certificate = selfSigned();
  if (!certificate) return skip("there is no openssl to make a certificate with");
  let calls = 0;
  const url = await listening(createTlsServer(certificate).on("connection", () => calls++));
  const truewire = await gateway(`https://${url}/v1`, { models: { m: "m" } });
  const { status, text } = await ask(truewire);
  expect(status).toBe(502);
  expect(text).toMatch(
    /has a certificate that is not trusted: self-signed certificate \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
  );
  expect(calls).toBe(1);
});

describe("health", () => {
  /** Three failures in a row, by any client's doing, took the gateway out of rotation. */
  test("an upstream that answers with errors is there", async () => {
    const source = await upstream((response) => response.writeHead(500).end());
    const truewire = await gateway(source.url);
    for (let i = 0; i < 6; i++) expect((await ask(truewire)).status).toBe(500);
    expect(await health(truewire.url)).toMatchObject({ status: 200, told: { status: "ok" } });
  });

  test("one that is gone is told, the gateway lives, and the upstream is used again when it is back", async () => {
    const source = await startScripted((response, body) => say(response, body, "Hello"));
    const port = Number(new URL(source.url).port);
    const truewire = await gateway(source.url, { retries: 0 });
    await source.close();
    for (let i = 0; i < 3; i++) expect((await ask(truewire)).status).toBeGreaterThanOrEqual(502);
    expect(await health(truewire.url)).toMatchObject({ status: 503, told: { status: "unavailable" } });
    expect((await fetch(`${truewire.url}/health/live`)).status).toBe(200);
    const again = await startScripted((response, body) => say(response, body, "Hello"), port);
    closeAfterTest(() => again.close());
    await until(async () => (await health(truewire.url)).status === 200, "it is used again");
  });
});

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closeAfterTest(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
