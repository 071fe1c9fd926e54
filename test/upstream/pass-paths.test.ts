import { createHash, randomBytes } from "node:crypto";
import { request as httpRequest } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, RequestListener } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { createFetchHandler } from "../../src/fetch.ts";
import { createServer, type TruewireServer } from "../../src/serve/app/create-server.ts";
import { closeAfterTest, listenInTest } from "../support/close-after-test.ts";
import { until } from "../support/scripted-engine.ts";

interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

type Options = Parameters<typeof createServer>[0];

/** A server with paths that Truewire does not have. */
async function startOther(answer: RequestListener): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = [];
  const server = await listenInTest((request, response) => {
    const { method = "", url = "", headers } = request;
    received.push({ method, url, headers });
    answer(request, response);
  });
  return { url: `${server.url}/v1`, received };
}

function upstreamModel(url: string, passPaths: readonly string[]) {
  return { kind: "upstream", url, name: "other", key: "sk-upstream", models: ["m"], passPaths } as const;
}

async function startGateway(
  url: string,
  passPaths: readonly string[],
  options: Partial<Options> = {},
): Promise<TruewireServer> {
  const gateway = await createServer({
    port: 0,
    logLevel: "silent",
    models: [upstreamModel(url, passPaths)],
    ...options,
  });
  closeAfterTest(() => gateway.close(0));
  return gateway;
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const hashOf = (key: string): string => `sha256:${createHash("sha256").update(key).digest("hex")}`;

describe("paths that an upstream has and Truewire has not", () => {
  test("the bytes, the query and the headers of both bodies are passed on, but not the client's credentials", async () => {
    const sent = randomBytes(300_000);
    const answer = gzipSync(randomBytes(200_000));
    let body: Buffer | undefined;
    const other = await startOther((request, response) => {
      void bytesOf(request).then((bytes) => {
        body = bytes;
        const headers = { "content-type": "image/png", "content-encoding": "gzip", "x-cost": "3", "set-cookie": "a=b" };
        response.writeHead(201, { ...headers, "access-control-allow-origin": "*" }).end(answer);
      });
    });
    const gateway = await startGateway(other.url, ["/images/*"]);
    const asked = httpRequest(`${gateway.url}/v1/images/edits?size=1%2f2&b`, {
      method: "PUT",
      headers: {
        "content-type": 'multipart/form-data; boundary="x"',
        authorization: "Bearer sk-client",
        cookie: "session=1",
        "x-title": "kept",
      },
    });
    asked.end(sent);
    const response = await new Promise<IncomingMessage>((resolve) => asked.on("response", resolve));
    expect((await bytesOf(response)).equals(answer)).toBe(true);
    expect(body?.equals(sent)).toBe(true);
    expect(response.statusCode).toBe(201);
    expect(response.headers).toMatchObject({ "content-type": "image/png", "content-encoding": "gzip", "x-cost": "3" });
    expect(response.headers["set-cookie"]).toBeUndefined();
    expect(response.headers["access-control-allow-origin"]).toBeUndefined();
    const [{ method, url, headers } = { method: "", url: "", headers: {} }] = other.received;
    expect([method, url]).toEqual(["PUT", "/v1/images/edits?size=1%2f2&b"]);
    expect(headers).toMatchObject({
      "content-type": 'multipart/form-data; boundary="x"',
      authorization: "Bearer sk-upstream",
      "x-title": "kept",
    });
    expect(headers.cookie).toBeUndefined();
  });

  test("both bodies are streamed: each chunk comes back before the next is sent", async () => {
    const other = await startOther((request, response) => void request.pipe(response));
    const gateway = await startGateway(other.url, ["/audio/*"]);
    const asked = httpRequest(`${gateway.url}/v1/audio/speech`, { method: "POST" });
    asked.write("first");
    const response = await new Promise<IncomingMessage>((resolve) => asked.on("response", resolve));
    const chunks = response.setEncoding("utf8")[Symbol.asyncIterator]();
    expect((await chunks.next()).value).toBe("first");
    asked.end("second");
    expect((await chunks.next()).value).toBe("second");
    expect((await chunks.next()).done).toBe(true);
  });

  test("a client that leaves ends the request at the upstream", async () => {
    let isOver = false;
    const other = await startOther((_, response) => {
      response.on("close", () => (isOver = true));
      response.write("some");
    });
    const gateway = await startGateway(other.url, ["/files"]);
    const client = new AbortController();
    const response = await fetch(`${gateway.url}/v1/files`, { signal: client.signal });
    await response.body?.getReader().read();
    client.abort();
    await until(() => isOver, "the upstream's connection is closed");
  });

  test("an answer that breaks off is broken off, and an upstream that is away is a 503", async () => {
    const other = await startOther((_, response) => {
      response.write("some");
      setImmediate(() => response.destroy());
    });
    const gateway = await startGateway(other.url, ["/files"]);
    await expect(fetch(`${gateway.url}/v1/files`).then((response) => response.text())).rejects.toThrow();
    const away = await startGateway("http://127.0.0.1:9/v1", ["/files"]);
    const response = await fetch(`${away.url}/v1/files`);
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { message: /The upstream other cannot be reached/ } });
  });

  test("keys, their models and limits, and the size of bodies apply; metrics and Inspect show the requests", async () => {
    const other = await startOther((request, response) => {
      void bytesOf(request).then(
        () => response.end("ok"),
        () => {},
      );
    });
    const gateway = await startGateway(other.url, ["/moderations"], {
      bodyLimit: 1000,
      adminKey: "tw-admin-0123456789",
      inspect: true,
      keys: [
        { name: "alice", hash: hashOf("tw-alice"), requestsPerMinute: 3 },
        { name: "bob", hash: hashOf("tw-bob"), models: ["another"] },
      ],
    });
    const ask = async (key: string, body: string | ReadableStream = "{}"): Promise<number> => {
      const headers = { authorization: `Bearer ${key}` };
      const init = { method: "POST", headers, body, duplex: "half" };
      const response = await fetch(`${gateway.url}/v1/moderations`, init as RequestInit);
      await response.text();
      return response.status;
    };
    expect(await ask("tw-nobody")).toBe(401);
    expect(await ask("tw-bob")).toBe(404);
    expect(await ask("tw-alice", "x".repeat(1001))).toBe(413);
    // Of unknown length.
    expect(await ask("tw-alice", new Blob(["x".repeat(1001)]).stream())).toBe(413);
    expect(await ask("tw-alice")).toBe(200);
    expect(await ask("tw-alice")).toBe(429);
    const admin = { headers: { authorization: "Bearer tw-admin-0123456789" } };
    const { requests } = (await (await fetch(`${gateway.url}/admin/requests`, admin)).json()) as {
      requests: readonly { path: string }[];
    };
    expect(requests.filter(({ path }) => path === "/v1/moderations")).toHaveLength(6);
    const metrics = await (
      await fetch(`${gateway.url}/metrics`, { headers: { authorization: "Bearer tw-alice" } })
    ).text();
    expect(metrics).toMatch(
      /request_duration_seconds_count\{[^}]*api="passed",key="alice"[^}]*outcome="finished"[^}]*\} 1/,
    );
  });

  test("other paths stay here: a 404 names the setting, no segment leads elsewhere, and own paths are refused", async () => {
    const other = await startOther((_, response) => response.end("passed"));
    const gateway = await startGateway(other.url, ["/images/*"]);
    const statusOf = (path: string): Promise<number> =>
      new Promise((resolve) =>
        httpRequest(gateway.url, { path }, (response) => resolve(response.resume().statusCode ?? 0)).end(),
      );
    for (const path of ["../admin/keys", "..%2fadmin", "%2e%2e/x", "..\\x", "a/./b"])
      expect(await statusOf(`/v1/images/${path}`), path).toBe(404);
    expect(await statusOf("/v1/images/a..b")).toBe(200);
    expect(other.received.map(({ url }) => url)).toEqual(["/v1/images/a..b"]);
    const unknown = await fetch(`${gateway.url}/v1/moderations`);
    expect(((await unknown.json()) as { error: { message: string } }).error.message).toContain(
      "add it to the upstream's passPaths: [/moderations]",
    );
    await expect(createServer({ port: 0, models: [upstreamModel(other.url, ["/v1/embeddings"])] })).rejects.toThrow(
      "passPaths has /embeddings, which Truewire answers itself",
    );
  });

  test("a handler of fetch passes paths on, too", async () => {
    const other = await startOther((request, response) => void request.pipe(response));
    const handler = createFetchHandler({
      logLevel: "silent",
      models: [upstreamModel(other.url, ["/audio/*"])],
    });
    closeAfterTest(() => handler.close(0));
    const bytes = randomBytes(100_000);
    const request = new Request("http://localhost/v1/audio/speech", { method: "POST", body: bytes });
    const response = await handler.fetch(request);
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
  });
});
