import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { knownPaths } from "../../src/serve/server/routes.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { createHandler } from "../../src/server.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { chat, serving } from "../support/transports.ts";

/** A page's request: fetch itself would not let a test set `Origin` and `Host`, so its parts are put on the wire by node:http. */
async function fromPage(url: string, origin: string, init: RequestInit = {}, host?: string): Promise<Response> {
  const { request } = await import("node:http");
  return new Promise((resolve, reject) => {
    const headers = { ...(init.headers as Record<string, string>), origin, ...(host !== undefined && { host }) };
    const outgoing = request(url, { method: init.method ?? "GET", headers }, (incoming) => {
      let text = "";
      incoming.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      incoming.on("end", () => {
        const { statusCode: status = 0 } = incoming;
        resolve(
          new Response(status === 204 ? null : text, { status, headers: incoming.headers as Record<string, string> }),
        );
      });
    });
    outgoing.on("error", reject).end(init.body);
  });
}

describe("pages, by default", () => {
  let server: TruewireServer;
  const engine = new ScriptedEngine(() => answer(["Hi"]));
  beforeAll(async () => {
    server = await createServer({ ...serving(engine), port: 0, logLevel: "silent" });
  });
  afterAll(() => server.close(0));

  test.each([
    "http://localhost:5173",
    "https://localhost",
    "http://127.0.0.1:3000",
    "http://[::1]:8080",
    "http://app.localhost",
    "app://obsidian.md",
    "file://",
    "vscode-webview://abc",
    "chrome-extension://abcdefgh",
  ])("%s, a page of this machine, may call and read", async (origin) => {
    const preflight = await fromPage(`${server.url}/v1/chat/completions`, origin, {
      method: "OPTIONS",
      headers: {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,x-stainless-os",
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-origin")).toBe(origin);
    expect(preflight.headers.get("access-control-allow-methods")).toBe("POST, OPTIONS");
    expect(preflight.headers.get("access-control-allow-headers")).toBe("authorization,x-stainless-os");
    const response = await fromPage(`${server.url}/v1/chat/completions`, origin, chat("Hello"));
    expect(response.status).toBe(200);
    expect(response.headers.get("access-control-allow-origin")).toBe(origin);
    expect(response.headers.get("access-control-expose-headers")).toMatch(
      /^X-Request-ID, X-Truewire-Warning, X-Truewire-Resume, .*request-id, retry-after, .*x-ratelimit-remaining-tokens.*anthropic-ratelimit-input-tokens-reset/,
    );
    expect(response.headers.get("vary")).toBe("Origin");
  });

  test.each(["https://evil.example", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "null"])(
    "%s may not even ask: the engine is not reached",
    async (origin) => {
      const before = engine.requests.length;
      for (const init of [chat("Hello"), { method: "OPTIONS" }]) {
        const response = await fromPage(`${server.url}/v1/chat/completions`, origin, init);
        expect(response.status).toBe(403);
        expect(response.headers.get("access-control-allow-origin")).toBeNull();
        expect(await response.json()).toMatchObject({ error: { code: "origin_not_allowed" } });
      }
      expect(engine.requests.length).toBe(before);
    },
  );

  test("a name that was made to point here (DNS rebinding) is no page of ours; an address is", async () => {
    const { port } = new URL(server.url);
    const rebound = await fromPage(
      `${server.url}/v1/models`,
      `http://evil.example:${port}`,
      {},
      `evil.example:${port}`,
    );
    expect(rebound.status).toBe(403);
    const own = await fromPage(`${server.url}/v1/models`, `http://192.168.7.7:${port}`, {}, `192.168.7.7:${port}`);
    expect(own.status).toBe(200);
  });

  // The server's own page, opened under such a name, could be seen and could not ask.
  test("a page of this server, under a name that nobody else can own, may call", async () => {
    const { port } = new URL(server.url);
    for (const host of [`truewire:${port}`, `desk.local:${port}`]) {
      const response = await fromPage(`${server.url}/v1/chat/completions`, `http://${host}`, chat("Hello"), host);
      expect(response.status, host).toBe(200);
      const other = await fromPage(`${server.url}/v1/models`, `http://${host}1`, {}, host);
      expect(other.status, host).toBe(403);
    }
  });

  /** A page under such a name sends no Origin to "its own" site, and read the models' names. */
  test("a server without keys is called by no stranger's name, on no path", async () => {
    const { port } = new URL(server.url);
    const called = async (path: string, host: string, more: Record<string, string> = {}): Promise<number> => {
      const { get } = await import("node:http");
      return new Promise((resolve, reject) => {
        const headers = { host: `${host}:${port}`, ...more };
        get(`${server.url}${path}`, { headers }, (incoming) => {
          incoming.resume();
          resolve(incoming.statusCode ?? 0);
        }).on("error", reject);
      });
    };
    const own = knownPaths().map((known) => known.split(" ")[1]?.replace("{id}", "x") ?? "");
    for (const path of ["/", "/health", "/v1/models", "/page/index.html", "/metrics", "/nope", ...own]) {
      for (const host of ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example."])
        expect(await called(path, host), `${host}${path}`).toBe(403);
    }
    // A page's WebSocket is not held by the rules for pages at all.
    const upgrade = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
    const asked = { ...upgrade, "sec-websocket-key": btoa("0123456789abcdef") };
    expect(await called("/v1/responses", "evil.example", asked)).toBe(403);
    for (const host of ["localhost", "127.0.0.1", "[::1]", "192.168.7.7", "truewire", "desk.local", "a.b.internal"])
      expect(await called("/v1/models", host), host).toBe(200);
  });

  test("an error that a page may see carries the header that lets it", async () => {
    const response = await fromPage(`${server.url}/v1/nope`, "http://localhost:5173");
    expect(response.status).toBe(404);
    expect(response.headers.get("access-control-allow-origin")).toBe("http://localhost:5173");
  });
});

describe("pages, by --cors-origin", () => {
  test("a list lets those that are listed in, and no others", async () => {
    const engine = new ScriptedEngine(() => answer(["Hi"]));
    const server = await createServer({
      ...serving(engine),
      port: 0,
      logLevel: "silent",
      corsOrigin: "https://app.example/",
    });
    expect((await fromPage(`${server.url}/v1/models`, "https://app.example")).status).toBe(200);
    expect((await fromPage(`${server.url}/v1/models`, "http://localhost:3000")).status).toBe(403);
    await server.close(0);
  });

  test("* lets every page in", async () => {
    const engine = new ScriptedEngine(() => answer(["Hi"]));
    const server = await createServer({ ...serving(engine), port: 0, logLevel: "silent", corsOrigin: "*" });
    const response = await fromPage(`${server.url}/v1/models`, "https://anybody.example");
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    await server.close(0);
  });

  test("inside somebody else's server, pages are that server's business until origins are set", async () => {
    const models = [{ kind: "engine", engine: new ScriptedEngine(() => answer(["Hi"])) }] as const;
    const request = (): Request =>
      new Request("http://app.example/v1/models", { headers: { origin: "https://x.example" } });
    const open = await createHandler({ models }).fetch(request());
    expect(open.status).toBe(200);
    expect(open.headers.get("access-control-allow-origin")).toBeNull();
    const listed = await createHandler({ models, corsOrigin: "https://y.example" }).fetch(request());
    expect(listed.status).toBe(403);
  });
});
