import { createServer as createHttpServer } from "node:http";
import { createSecureServer } from "node:http2";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { Agent, fetch as undiciFetch } from "undici";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { createHandler } from "../../src/server.ts";
import { createServer } from "../../src/serve/app/create-server.ts";
import { selfSigned } from "./certificate.ts";
import type { Engine } from "../../src/wire/core/engine.ts";
import { waitMs } from "./hang.ts";

/** The API as a test reaches it, whatever carries it. */
export interface Api {
  fetch(path: string, init?: RequestInit): Promise<Response>;
  close(): Promise<void>;
}

interface Transport {
  readonly name: string;
  open(config: TruewireConfig): Promise<Api>;
}

const certificate = selfSigned();

/** Over HTTP/2, which clients agree on with the server while they connect by TLS. */
const overHttp2: Transport = {
  name: "createHandler over node:http2",
  async open(config) {
    const handler = createHandler(config);
    const { cert = "", key = "" } = certificate ?? {};
    const http2 = createSecureServer({ allowHTTP1: true, cert, key }, handler as unknown as Http2Listener);
    const sockets = new Set<Socket>();
    http2.on("connection", (socket: Socket) => sockets.add(socket));
    await new Promise<void>((resolve) => http2.listen(0, "127.0.0.1", resolve));
    const { port } = http2.address() as AddressInfo;
    const dispatcher = new Agent({ allowH2: true, connect: { ca: cert, timeout: waitMs } });
    return {
      fetch(path, init) {
        const { body } = init ?? {};
        // undici never ends a request over HTTP/2 whose body is empty.
        const some = body instanceof Blob && body.size === 0 ? { body: " " } : {};
        const options = { ...(init as object), ...some, dispatcher };
        return undiciFetch(`https://127.0.0.1:${port}${path}`, options) as unknown as Promise<Response>;
      },
      async close() {
        await handler.close(0);
        await dispatcher.destroy();
        // In Node 24, a session that is destroyed with bytes to write sometimes keeps its connection open, and the server never closes.
        for (const socket of sockets) socket.destroy();
        await new Promise((resolve) => http2.close(resolve));
      },
    };
  },
};

type Http2Listener = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

/** The ways into the server: each case that is the same in all of them runs in all of them. */
export const transports: readonly Transport[] = [
  {
    name: "createServer",
    async open(config) {
      const server = await createServer({ port: 0, logLevel: "silent", ...config });
      return { fetch: (path, init) => fetch(server.url + path, init), close: () => server.close(0) };
    },
  },
  {
    name: "createHandler over node:http",
    async open(config) {
      const handler = createHandler(config);
      const http = createHttpServer(handler);
      await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
      const { port } = http.address() as AddressInfo;
      return {
        fetch: (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init),
        async close() {
          await handler.close(0);
          http.closeAllConnections();
          await new Promise((resolve) => http.close(resolve));
        },
      };
    },
  },
  {
    name: "createHandler().fetch",
    async open(config) {
      const handler = createHandler(config);
      return {
        fetch: (path, init) => handler.fetch(new Request(`http://api.test${path}`, init)),
        close: () => handler.close(0),
      };
    },
  },
  ...(certificate ? [overHttp2] : []),
];

export function serving(engine: Engine, config: TruewireConfig = {}): TruewireConfig {
  return { ...config, models: [{ kind: "engine", engine }] };
}

/** A chat request with one message. */
export function chat(content: string, more: Readonly<Record<string, unknown>> = {}): RequestInit {
  return json({ model: "scripted", messages: [{ role: "user", content }], ...more });
}

export function json(body: unknown): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** The data of each event of a stream, parsed; `[DONE]` and comments as texts. */
export function events(sse: string): unknown[] {
  return sse
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => (event.startsWith("data: {") ? (JSON.parse(event.slice("data: ".length)) as unknown) : event));
}
