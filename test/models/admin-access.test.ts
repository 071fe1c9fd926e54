import { request as httpRequest } from "node:http";
import { expect, test } from "vitest";
import { createHandler } from "../../src/server.ts";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";

const paths = [
  ["GET", "/admin/models"],
  ["POST", "/admin/models/load"],
  ["POST", "/admin/models/unload"],
  ["POST", "/admin/models/pull"],
  ["POST", "/admin/models/keep"],
  ["POST", "/admin/check"],
  ["POST", "/admin/between"],
  ["POST", "/admin/reload"],
  ["GET", "/v1/admin/models"],
] as const;

function config(over: TruewireConfig): TruewireConfig {
  const engine = new ScriptedEngine(() => answer(["Hi"]));
  return { port: 0, logLevel: "silent", models: [{ kind: "engine", engine }], ...over };
}

/** The status of every admin path for a request with these headers. */
async function statuses(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Set<number>> {
  const found = new Set<number>();
  for (const [method, path] of paths) found.add(await statusOf(url, method, path, headers));
  return found;
}

/** With node:http, which sends any header. */
function statusOf(
  url: string,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url + path, { method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on("error", reject).end(method === "POST" ? '{"model":"nobody"}' : "");
  });
}

test("with an admin key: that key alone enters, a client's key does not", async () => {
  const server = await createServer(config({ apiKey: "client-key-12345678", adminKey: ["admin-key-12345678"] }));
  expect(await statuses(server.url)).toEqual(new Set([401]));
  expect(await statuses(server.url, { authorization: "Bearer client-key-12345678" })).toEqual(new Set([401]));
  const entered = await statuses(server.url, { authorization: "Bearer admin-key-12345678" });
  expect([...entered].sort()).toEqual([200, 400, 404]);
  expect(await statusOf(server.url, "GET", "/v1/models", { authorization: "Bearer admin-key-12345678" })).toBe(401);
  await server.close(0);
});

test("without one: closed where clients need a key, or where others than this machine are served", async () => {
  const withKey = await createServer(config({ apiKey: "client-key-12345678" }));
  expect(await statuses(withKey.url, { authorization: "Bearer client-key-12345678" })).toEqual(new Set([403]));
  await withKey.close(0);
  const forAll = await createServer(config({ host: "0.0.0.0" }));
  expect(await statuses(forAll.url)).toEqual(new Set([403]));
  await forAll.close(0);
  const handler = createHandler(config({}));
  expect((await handler.fetch(new Request("http://localhost/admin/models"))).status).toBe(403);
  await handler.close();
});

test("without one, for this machine only: its programs may enter; no web page, no proxy, no other name", async () => {
  const server = await createServer(config({}));
  expect([...(await statuses(server.url))].sort()).toEqual([200, 400, 404]);
  const strangers: readonly Readonly<Record<string, string>>[] = [
    { origin: "http://localhost:3000" },
    { "x-forwarded-for": "203.0.113.7" },
    { via: "1.1 proxy" },
    // An image or a script of another page: without an origin.
    { "sec-fetch-site": "cross-site" },
    { host: "server.lan" },
    { host: "rebound.example", origin: "http://rebound.example" },
    { host: "server.lan", origin: "http://server.lan" },
  ];
  for (const headers of strangers) expect(await statuses(server.url, headers)).toEqual(new Set([403]));
  // A browser sends the origin of the server's own page with each POST.
  const { host } = new URL(server.url);
  const headers: readonly Readonly<Record<string, string>>[] = [
    { origin: server.url },
    { origin: server.url.replace("http", "https"), host },
  ];
  for (const own of headers) expect([...(await statuses(server.url, own))].sort()).toEqual([200, 400, 404]);
  expect(await statuses(server.url, { origin: server.url, via: "1.1 proxy" })).toEqual(new Set([403]));
  await server.close(0);
});

test("a key of clients cannot be an admin key, too", async () => {
  await expect(createServer(config({ apiKey: ["one", "both"], adminKey: "both" }))).rejects.toThrow(
    "adminKey: is a key of clients (apiKey), too; expected one of its own",
  );
});

test("only local models are loaded and unloaded; errors are OpenAI's objects", async () => {
  const server = await createServer(config({}));
  const post = (path: string, body: string): Promise<Response> =>
    fetch(`${server.url}/admin/${path}`, { method: "POST", headers: { "content-type": "application/json" }, body });
  expect(await (await fetch(`${server.url}/admin/models`)).json()).toEqual({
    memory: { limit: null, used: 0 },
    models: [{ name: "scripted", models: ["scripted"], state: "ready" }],
  });
  const refused = await post("models/load", '{"model":"scripted"}');
  expect([refused.status, await refused.json()]).toEqual([
    400,
    {
      error: {
        message: expect.stringContaining("neither loaded nor unloaded") as string,
        type: "invalid_request_error",
        param: "model",
        code: null,
      },
    },
  ]);
  expect((await post("models/load", "{}")).status).toBe(400);
  expect((await post("models/load", '{"model":"nobody"}')).status).toBe(404);
  expect((await post("models/pull", '{"model":"https://example.com/model.gguf"}')).status).toBe(404);
  expect((await post("reload", "")).status).toBe(400);
  await server.close(0);
});
