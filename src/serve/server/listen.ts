import { createServer } from "node:http";
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import { writeErrorBody } from "../../wire/apis/error-body.ts";
import { requestId } from "../../wire/apis/ids.ts";
import { UpgradableRequest } from "./web-sockets.ts";
import { lean } from "../../wire/apis/profile.ts";
import type { Log } from "./log.ts";
import { random } from "../../wire/random/random.ts";

/** PEM texts. */
export interface ServerCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface Listener {
  readonly http: Server;
  /** Replaces the certificate for new connections. Absent: the server uses plain HTTP. */
  readonly renew?: (certificate: ServerCertificate) => void;
}

export interface ListenOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Present: the server uses HTTPS. */
  readonly certificate?: ServerCertificate;
  /** Time limit for the headers of a request, in milliseconds. */
  readonly headerTimeoutMs: number;
  /** Time limit for the whole request, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** A connection without a request is closed after this time, in milliseconds. */
  readonly idleTimeoutMs: number;
  /** The limit of open files; undefined: unlimited. */
  readonly descriptorLimit: number | undefined;
  readonly log: Log;
}

type UpgradeListener = (request: IncomingMessage, connection: Duplex, head: Buffer) => void;

/** The first byte of a TLS connection: a handshake record. Source: RFC 8446, section 5.1. */
const tlsHandshake = 0x16;
const handshakeCode = "TLS_HANDSHAKE";
/** OpenSSL's code for a connection that begins with an HTTP request instead of a handshake. */
const plainHttpCode = "ERR_SSL_HTTP_REQUEST";

/** File descriptors that are kept free for upstreams, logs and the system's own needs. */
const reservedDescriptors = 32;

/**
 * Opens the HTTP server. Rejects with the system's error when it cannot listen (`EADDRINUSE`, `EACCES`, …).
 * Malformed or rejected connections (no HTTP, headers too slow or too large, no file descriptor left) are answered here, as OpenAI does.
 */
export async function listen(
  options: ListenOptions,
  onRequest: RequestListener,
  onUpgrade: UpgradeListener,
): Promise<Listener> {
  const { certificate, headerTimeoutMs, requestTimeoutMs, idleTimeoutMs, descriptorLimit, log } = options;
  const httpOptions = {
    headersTimeout: headerTimeoutMs,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: idleTimeoutMs,
    connectionsCheckingInterval: Math.max(100, Math.min(5000, headerTimeoutMs / 4)),
    noDelay: true,
    // Node's own refusal has no body; `isAmbiguous` looks at it.
    requireHostHeader: false,
    IncomingMessage: UpgradableRequest,
  };
  const https = certificate && (await import("node:https"));
  const secure = https?.createServer({ ...httpOptions, ...certificate });
  const server: Server = secure ?? createServer(httpOptions);
  server.on("upgrade", onUpgrade);
  const responses = new WeakMap<Duplex, ServerResponse>();
  /** Connections whose refusal has been sent. */
  const refused = new WeakSet<Duplex>();
  server.on("request", (request, response) => {
    responses.set(request.socket, response);
    if (isAmbiguous(request)) {
      refused.add(request.socket);
      const { failure } = connectionFailure(undefined);
      log.warn({ status: failure.status }, failure.message);
      const { status, contentType, body } = writeErrorBody(failure, lean);
      const headers = { "content-type": contentType, "content-length": Buffer.byteLength(body) };
      response.writeHead(status, {
        ...headers,
        connection: "close",
        "x-content-type-options": "nosniff",
        "x-request-id": requestId(random),
      });
      response.end(body);
      return;
    }
    // `close` ends only idle connections: others would be kept, and served, as long as they are used.
    if (!server.listening) response.setHeader("Connection", "close");
    onRequest(request, response);
  });
  server.on("clientError", (error: NodeJS.ErrnoException & { readonly rawPacket?: Uint8Array }, socket) => {
    if (refused.has(socket)) return;
    const code = error.rawPacket?.[0] === tlsHandshake ? handshakeCode : error.code;
    const answered = responses.get(socket)?.headersSent === true && responses.get(socket)?.writableFinished === false;
    const line = code === plainHttpCode ? connectionBelow(socket) : socket;
    if (line.writable && !answered && code !== "ECONNRESET") {
      const failure = connectionFailure(code);
      log.warn({ status: failure.failure.status, code }, failure.message);
      line.on("error", () => {});
      line.write(rawAnswer(failure), () => line.destroy());
    }
    socket.destroy();
  });
  if (descriptorLimit !== undefined) refuseBeyondDescriptors(server, descriptorLimit, log);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    // The longest queue that the system allows: after a restart, all clients connect at the same time.
    server.listen({ port: options.port, host: options.host, backlog: 65_535 }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  // Accepting may fail later (EMFILE, ENFILE, ENOBUFS). That affects one connection, not the server.
  server.on("error", (error: NodeJS.ErrnoException) =>
    log.error({ code: error.code }, `accepting failed: ${error.message}`),
  );
  return { http: server, ...(secure && { renew: (renewed) => secure.setSecureContext(renewed) }) };
}

/**
 * Refuses connections near the limit of descriptors with 503, so that some are left for running requests. A new descriptor has the lowest
 * free number, which shows how many are in use.
 */
function refuseBeyondDescriptors(server: Server, limit: number, log: Log): void {
  let refused = 0;
  let lastLogged = -Infinity;
  server.on("connection", (socket) => {
    // Many requests may wait in one connection (pipelining), and each listens for its end.
    socket.setMaxListeners(0);
    const descriptor = (socket as { _handle?: { fd?: unknown } })._handle?.fd;
    if (typeof descriptor !== "number" || descriptor < limit - reservedDescriptors) return;
    refused++;
    if (performance.now() - lastLogged > 1000) {
      lastLogged = performance.now();
      log.error({ limit, refused }, "no file descriptors left for new connections; raise the limit (ulimit -n)");
    }
    socket.on("error", () => {});
    socket.end(rawAnswer(descriptorsExhausted()), () => socket.destroy());
  });
}

/**
 * Returns the connection that a TLS connection is carried by: the TLS connection itself has been destroyed when the handshake fails. Node
 * has no public name for it (`_parent`, lib/internal/tls/wrap.js of Node 20 to 24). Without it, the client gets no answer.
 */
function connectionBelow(socket: Duplex): Duplex {
  return (socket as { readonly _parent?: Duplex })._parent ?? socket;
}

/**
 * Whether a proxy may read the request in another way than Node: two `Host` headers, of which Node takes the first, or none; a URL with
 * another host than `Host`; or a transfer coding other than `chunked`. Source: RFC 9112, sections 3.2 and 6.1.
 */
function isAmbiguous({ headers, rawHeaders, httpVersion, url = "/" }: IncomingMessage): boolean {
  // The absolute form: GET http://host/path.
  if (!url.startsWith("/") && url !== "*" && url.includes("://")) {
    const host = URL.canParse(url) ? new URL(url).host : undefined;
    const named = `http://${headers.host ?? ""}`;
    if (host === undefined || !URL.canParse(named)) return true;
    const ports = /:(?:80|443)$/;
    if (host.replace(ports, "") !== new URL(named).host.replace(ports, "")) return true;
  }
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked") return true;
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (name.length === 4 && name.toLowerCase() === "host") hosts++;
  }
  return hosts > 1 || (hosts === 0 && httpVersion === "1.1");
}

function descriptorsExhausted(): FailureError {
  return new FailureError({
    message: "The server has too many open connections. Please try again later.",
    status: 503,
    kind: "unavailable",
    code: "too_many_connections",
    retryAfterSeconds: 1,
  });
}

function connectionFailure(code: string | undefined): FailureError {
  const refused = (status: number, message: string): FailureError =>
    new FailureError({ ...invalidRequest(message).failure, status });
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return refused(408, "The request was not complete in time.");
  if (code === "HPE_HEADER_OVERFLOW") return refused(431, "The request's headers are too large.");
  if (code === handshakeCode)
    return refused(400, "The client speaks HTTPS, but this port serves HTTP: use http:// in the URL.");
  if (code === plainHttpCode)
    return refused(400, "The client speaks HTTP, but this port serves HTTPS: use https:// in the URL.");
  return refused(400, "The request is not valid HTTP.");
}

function rawAnswer(error: FailureError): string {
  const { status, contentType, body } = writeErrorBody(error.failure, lean);
  const retry = error.failure.retryAfterSeconds;
  return [
    `HTTP/1.1 ${status} ${reasons[status] ?? "Error"}`,
    `Content-Type: ${contentType}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
    "X-Content-Type-Options: nosniff",
    `x-request-id: ${requestId(random)}`,
    ...(retry === undefined ? [] : [`Retry-After: ${retry}`]),
    "",
    body,
  ].join("\r\n");
}

const reasons: Readonly<Record<number, string>> = {
  400: "Bad Request",
  408: "Request Timeout",
  431: "Request Header Fields Too Large",
  503: "Service Unavailable",
};
