import { request as httpRequest } from "node:http";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { ConfigError } from "../../src/serve/config/config-error.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { startTruewire } from "../support/serve.ts";
import { chat } from "../support/transports.ts";
import { listed } from "./support.ts";

const admin = "admin-key-12345678";
const client = "client-key-12345678";

function config(over: TruewireConfig): TruewireConfig {
  const engine = new ScriptedEngine(() => answer(["Hi"]));
  return { port: 0, logLevel: "silent", models: [{ kind: "engine", engine }], ...over };
}

const paths = ["/admin/requests", "/admin/requests/live", "/admin/requests/req_1", "/admin/requests/req_1/capture"];

/** With node:http, which sends any header. */
function statusOf(url: string, path: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  return new Promise((settle, reject) => {
    const request = httpRequest(url + path, { headers }, (response) => {
      settle(response.statusCode ?? 0);
      request.destroy();
    });
    request.on("error", reject).end();
  });
}

async function statuses(url: string, headers: Readonly<Record<string, string>> = {}): Promise<number[]> {
  const found: number[] = [];
  for (const path of paths) found.push(await statusOf(url, path, headers));
  return found;
}

test("on this machine without keys: open to its programs and to its own page, to no other page", async () => {
  const server = await createServer(config({}));
  const there = [200, 200, 404, 404];
  expect(await statuses(server.url)).toEqual(there);
  expect(await statuses(server.url, { "sec-fetch-site": "same-origin" })).toEqual(there);
  const closed = [403, 403, 403, 403];
  const strangers: readonly Readonly<Record<string, string>>[] = [
    // A page may ask without reading the answer (no-cors), and then sends no origin.
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { origin: "http://localhost:3000" },
    { origin: "https://evil.example" },
    { host: "evil.example" },
    { host: "my-machine.local" },
    { "x-forwarded-for": "10.0.0.1" },
  ];
  for (const headers of strangers) expect(await statuses(server.url, headers), JSON.stringify(headers)).toEqual(closed);
  const response = await fetch(`${server.url}/admin/requests`);
  expect(response.headers.get("cross-origin-resource-policy")).toBe("same-origin");
  expect(response.headers.get("cache-control")).toBe("no-store");
  await server.close(0);
});

test("with keys, or for others than this machine: nothing is kept without --inspect", async () => {
  for (const over of [{ apiKey: client }, { host: "0.0.0.0" }]) {
    const server = await createServer(config({ ...over, adminKey: admin }));
    const url = server.url;
    // Clients without an admin key were asked for it first, although nothing is kept.
    expect(await statuses(url)).toEqual([404, 404, 404, 404]);
    expect(await statuses(url, { authorization: `Bearer ${client}` })).toEqual([404, 404, 404, 404]);
    expect(await statuses(url, { authorization: `Bearer ${admin}` })).toEqual([404, 404, 404, 404]);
    const told = await fetch(`${url}/admin/requests`);
    expect(await told.json()).toMatchObject({
      error: { code: "inspect_off", message: expect.stringContaining("--inspect") },
    });
    await server.close(0);
  }
});

test("with --inspect and the admin key: that key alone reads, and no key is in what it reads", async () => {
  const server = await createServer(config({ apiKey: client, adminKey: admin, inspect: true }));
  const asked = chat("hi");
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    ...asked,
    headers: { ...asked.headers, authorization: `Bearer ${client}` },
  });
  expect(response.status).toBe(200);
  await response.text();
  const wrong = await fetch(`${server.url}/v1/chat/completions`, {
    ...asked,
    headers: { ...asked.headers, authorization: "Bearer not-a-key-of-it" },
  });
  expect(wrong.status).toBe(401);
  expect(await statuses(server.url, { authorization: `Bearer ${client}` })).toEqual([401, 401, 401, 401]);
  const withKey = { headers: { authorization: `Bearer ${admin}` } };
  const { requests } = await listed(server.url, "", withKey);
  expect(requests.map(({ outcome }) => outcome)).toEqual(["finished", "refused"]);
  for (const { id } of requests) {
    const shown = await (await fetch(`${server.url}/admin/requests/${id}`, withKey)).text();
    expect(shown).not.toContain(client);
    expect(shown).not.toContain("not-a-key-of-it");
    expect(shown).toContain("Bearer [key]");
  }
  await server.close(0);
});

/** Every way to write a path that a client's base URL may lead to: all of them are routed. */
function spellings(path: string): string[] {
  return ["", "/", "/v1", "//v1", "/v1/", "//v1//"].flatMap((before) => [before + path, `${before}${path}/`]);
}

// The paths were once compared as they came: with two slashes before `/v1` (a base URL that ends in one), the body was kept.
test("what whoever runs the server posts is not kept: POST /admin/check holds another server's key", async () => {
  // As it is built: a check runs in a thread of its own.
  const server = await startTruewire([resolve("test/page/talker.js")]);
  const key = "sk-of-another-server-123456";
  const nobody = { url: "http://127.0.0.1:1/v1", key };
  const post = async (path: string, body: string): Promise<Response> => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(server.url + path, { method: "POST", headers, body });
    await response.text();
    return response;
  };
  // One check is enough: it starts a process. A refusal shows that the other spellings lead there too.
  expect((await post("/v1//admin/check", JSON.stringify(nobody))).status).toBe(200);
  for (const path of spellings("/admin/check")) {
    expect((await post(path, JSON.stringify({ ...nobody, url: "nowhere" }))).status, path).toBe(400);
    expect((await post(path, `{"key": "${key}"`)).status).toBe(400);
  }
  expect((await listed(server.url)).requests).toEqual([]);
  // Nor is a body that no path takes.
  expect((await post("/v1/administer/check", JSON.stringify(nobody))).status).toBe(404);
  // The server under check may be this one: the key comes back in a header.
  await post("/v1/admin/check", JSON.stringify({ url: `${server.url}/v1`, key, only: ["models"] }));
  const { requests } = await listed(server.url);
  expect(requests.map(({ path }) => path)).toEqual(expect.arrayContaining(["/v1/administer/check", "/v1/models"]));
  for (const { id } of requests) {
    const shown = await (await fetch(`${server.url}/admin/requests/${id}`)).text();
    expect(shown).not.toContain(key);
  }
  await server.stop();
});

test("--inspect without an admin key is refused where nobody could look", async () => {
  for (const over of [{ apiKey: client }, { host: "0.0.0.0" }])
    await expect(createServer(config({ ...over, inspect: true }))).rejects.toThrow(ConfigError);
});

test("--no-inspect keeps nothing", async () => {
  const server = await createServer(config({ inspect: false }));
  expect(await statuses(server.url)).toEqual([404, 404, 404, 404]);
  await server.close(0);
});

test("a configuration that is read again with keys lets go of what was kept", async () => {
  const open = config({});
  const server = await createServer(open);
  await (await fetch(`${server.url}/v1/chat/completions`, chat("hi"))).text();
  await server.reload(open);
  expect((await listed(server.url)).requests).toHaveLength(1);
  await server.reload({ ...open, apiKey: client, adminKey: admin });
  expect(await statuses(server.url, { authorization: `Bearer ${admin}` })).toEqual([404, 404, 404, 404]);
  await server.reload(open);
  expect((await listed(server.url)).requests).toEqual([]);
  await server.close(0);
});
