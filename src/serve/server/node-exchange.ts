import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { bodyAlreadyRead, bodyTooLarge } from "../../wire/apis/failures.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { bodyTooSlow, joined } from "./body-budget.ts";
import type { BodyLease } from "./body-budget.ts";
import { Departure, ClientGone, withoutBase } from "./exchange.ts";
import type { ExchangeBytes, HttpExchange, HeaderFields } from "./exchange.ts";
import { isLoopback } from "./origins.ts";
import { inTurns } from "./turns.ts";

/** How long the rest of a refused body is read and discarded, so that the client can read the refusal. In milliseconds. */
const lingerMs = 2000;

/** How long the last chunk of an answer may wait for its reader before the connection is closed, in milliseconds. */
const stalledMs = 5 * 60_000;

/** The chunk of size 0 that ends an answer. Source: RFC 9112, section 7.1. */
const lastChunk = "0\r\n\r\n";

/** A longer text is written separately from the frame of its chunk: to join the two, V8 would copy it once more. In characters. */
const maxJoined = 4096;

export interface NodeExchangeOptions {
  /** Removed from the path of the request. */
  readonly basePath?: string;
  /**
   * Write the frames of a chunked answer here, each as one string: Node writes the size, the text and the line end of each chunk separately.
   * Only for responses of Node's own server, which no framework wraps.
   */
  readonly framesChunks?: boolean;
}

/**
 * An exchange over node:http, over node:http2 by its compatibility API, or over a framework that passes their objects on (Express,
 * Fastify, Koa). Types only: nothing of Node is loaded.
 */
export class NodeExchange implements HttpExchange {
  readonly method: string;
  readonly path: string;
  readonly parsedBody?: unknown;
  readonly departure: Departure = new Departure();
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  /** The body as a framework has read it (`express.raw()`, `express.text()`). */
  readonly #received: Uint8Array | undefined;
  #unread = false;
  readonly #framesChunks: boolean;
  /** The chunks of this answer are framed here. */
  #isFramed = false;
  /** Ends the wait for a slow reader. A pipelined response that never got the socket hears neither "drain" nor "close". */
  #wake: (() => void) | undefined;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    { basePath = "", framesChunks = false }: NodeExchangeOptions = {},
  ) {
    this.#request = request;
    this.#response = response;
    this.#framesChunks = framesChunks;
    this.method = request.method ?? "GET";
    this.path = withoutBase(pathOf(request.url ?? "/"), basePath);
    if ("body" in request && request.readableEnded) {
      const { body } = request;
      if (typeof body === "string") this.#received = new TextEncoder().encode(body);
      else if (body instanceof Uint8Array) this.#received = body;
      else this.parsedBody = body;
    }
    // The socket, not the response: of pipelined responses, only the first has the socket and emits "close".
    const { socket } = request;
    const left = (): void => {
      // For an HTTP/2 stream that was reset, Node reports that it finished, although its end was never written.
      if (!response.writableFinished || !response.writableEnded) this.departure.happen();
      this.#wake?.();
    };
    socket.once("close", left);
    if (socket.destroyed) left();
    response.once("close", () => {
      socket.removeListener("close", left);
      unread.delete(this);
      left();
    });
    // "close" reports a broken connection. Without a listener, "error" would be thrown.
    request.on("error", ignore);
    response.on("error", ignore);
  }

  query(name: string): string | undefined {
    return this.queries(name)[0];
  }

  queries(name: string): readonly string[] {
    return this.#searchParams().getAll(name);
  }

  queryNames(): readonly string[] {
    return [...new Set(this.#searchParams().keys())];
  }

  #searchParams(): URLSearchParams {
    const { url = "" } = this.#request;
    return new URLSearchParams(url.slice(url.indexOf("?") + 1 || url.length));
  }

  header(name: string): string | undefined {
    const { headers } = this.#request;
    // The name of the header in HTTP/2.
    const value = headers[name] ?? (name === "host" ? headers[":authority"] : undefined);
    return Array.isArray(value) ? value.join(", ") : value;
  }

  headers(): readonly (readonly [name: string, value: string])[] {
    const { rawHeaders } = this.#request;
    const pairs: [string, string][] = [];
    for (let at = 0; at + 1 < rawHeaders.length; at += 2) pairs.push([rawHeaders[at] ?? "", rawHeaders[at + 1] ?? ""]);
    return pairs;
  }

  get isFromLoopback(): boolean {
    const address = this.#request.socket.remoteAddress ?? "";
    return isLoopback(address.replace(/^::ffff:/, ""));
  }

  async readBody(limit: number, lease: BodyLease): Promise<Uint8Array> {
    const request = this.#request;
    const received = this.#received ?? (request.readableEnded && !request.readableDidRead ? nothing : undefined);
    if (received) {
      if (received.length > limit) throw bodyTooLarge(limit);
      lease.complete(received.length);
      return received;
    }
    // Its "end" may have been emitted, and would be waited for without an end.
    if (request.readableDidRead) throw bodyAlreadyRead();
    return this.#receive(limit, lease);
  }

  #receive(limit: number, lease: BodyLease): Promise<Uint8Array> {
    const request = this.#request;
    return new Promise((resolve, reject) => {
      const chunks: Uint8Array[] = [];
      let size = 0;
      const settle = (action: () => void): void => {
        request.off("data", onData).off("end", onEnd).off("close", onClose);
        action();
      };
      const refuse = (error: unknown): void => {
        this.#unread = true;
        settle(() => reject(error));
      };
      /** Leaves the rest in the socket until there is memory for it. */
      const pause = (wait: Promise<void>): void => {
        request.pause();
        wait.then(() => request.resume(), refuse);
      };
      const onData = (chunk: Uint8Array): void => {
        size += chunk.length;
        if (size > limit) return refuse(bodyTooLarge(limit));
        chunks.push(chunk);
        const wait = lease.arrived(chunk.length);
        if (wait) pause(wait);
      };
      const onEnd = (): void => {
        lease.complete(size);
        settle(() => resolve(inTurns(joined(chunks, size))));
      };
      const onClose = (): void => settle(() => reject(new ClientGone()));
      const declared = declaredLength(request);
      if (declared > limit) return refuse(bodyTooLarge(limit));
      if (request.destroyed) return onClose();
      lease.onTooSlow = () => refuse(bodyTooSlow());
      const wait = lease.begin(declared);
      if (wait) pause(wait);
      request.on("end", onEnd).on("close", onClose);
      // Without an explicit pause, a listener for "data" lets the stream flow.
      request.on("data", onData);
    });
  }

  get bytes(): ExchangeBytes {
    const { url = "" } = this.#request;
    const query = url.indexOf("?");
    return {
      search: query === -1 ? "" : url.slice(query),
      read: (limit) => this.#stream(limit),
      write: (bytes) => this.write(bytes),
    };
  }

  #stream(limit: number): AsyncIterable<Uint8Array> | undefined {
    const request = this.#request;
    if (this.#received) return once(this.#received);
    if (request.readableDidRead) throw bodyAlreadyRead();
    const declared = declaredLength(request);
    if (declared > limit) throw this.#refused(limit);
    return declared === 0 ? undefined : this.#chunks(limit);
  }

  async *#chunks(limit: number): AsyncGenerator<Uint8Array> {
    let size = 0;
    try {
      for await (const chunk of this.#request.iterator({ destroyOnReturn: false })) {
        size += (chunk as Uint8Array).length;
        if (size > limit) throw this.#refused(limit);
        yield chunk as Uint8Array;
      }
    } catch (error) {
      throw error instanceof FailureError ? error : new ClientGone({ cause: error });
    } finally {
      this.#unread = !this.#request.readableEnded;
    }
  }

  #refused(limit: number): FailureError {
    this.#unread = true;
    return bodyTooLarge(limit);
  }

  send(status: number, headers: HeaderFields, body: string): void {
    if (this.departure.happened) return;
    const response = this.#response;
    // Not a spread: V8 gives each object with a spread and further members a hidden class of its own.
    const fields: Record<string, string> = Object.assign({}, headers);
    const size = Buffer.byteLength(body);
    // In a 304, the length would be that of the body that is not sent (RFC 9110, section 8.6).
    if (status !== 304) fields["content-length"] = String(size);
    if (this.#unread && this.#request.httpVersionMajor === 1) fields["connection"] = "close";
    response.writeHead(status, fields);
    if (!this.#unread) this.#finish(body, encodingOf(body, size));
    else this.#sendThenLinger(body);
  }

  /**
   * Answers a client that is still sending. If the connection were closed immediately, the system would reset it and the client might not
   * receive the answer. So the answer is sent, and the rest of the request is discarded until it ends or `lingerMs` have passed.
   */
  #sendThenLinger(body: string): void {
    const [request, response] = [this.#request, this.#response];
    response.write(body);
    const finish = (): void => {
      clearTimeout(timer);
      response.end();
    };
    const timer = setTimeout(finish, lingerMs);
    request.once("end", finish).once("close", finish);
    request.resume();
  }

  open(status: number, headers: HeaderFields): void {
    if (this.departure.happened) return;
    const response = this.#response;
    response.writeHead(status, headers);
    // False for HTTP/1.0, whose answers end with their connection.
    if (this.#framesChunks && response.chunkedEncoding) {
      response.chunkedEncoding = false;
      this.#isFramed = true;
    }
    // Node builds the head from dozens of strings, and keeps them all for as long as the answer lasts if it joins them with the first chunk.
    // Sent separately, they become one string; the system still sends both together.
    const { socket } = response;
    if (!socket || this.#request.httpVersionMajor !== 1) return;
    socket.cork();
    response.flushHeaders();
    process.nextTick(uncork, socket);
  }

  write(text: string | Uint8Array): Promise<void> | undefined {
    const response = this.#response;
    if (this.departure.happened || response.destroyed || text.length === 0 || this.#write(text)) return undefined;
    return new Promise((resolve) => {
      const go = (): void => {
        response.off("drain", go);
        this.#wake = undefined;
        resolve();
      };
      this.#wake = go;
      response.on("drain", go);
    });
  }

  /** Returns false when the reader is slow. */
  #write(text: string | Uint8Array): boolean {
    const response = this.#response;
    if (!this.#isFramed) return response.write(text);
    if (typeof text !== "string") {
      response.write(`${text.length.toString(16)}\r\n`, "latin1");
      response.write(text);
      return response.write("\r\n", "latin1");
    }
    const size = Buffer.byteLength(text);
    const encoding = encodingOf(text, size);
    if (text.length <= maxJoined) return response.write(`${size.toString(16)}\r\n${text}\r\n`, encoding);
    response.write(`${size.toString(16)}\r\n`, "latin1");
    response.write(text, encoding);
    return response.write("\r\n", "latin1");
  }

  end(text: string): void {
    if (this.departure.happened) return;
    if (!this.#isFramed) return this.#finish(text);
    if (text.length > maxJoined) this.#write(text);
    if (text === "" || text.length > maxJoined) return this.#finish(lastChunk, "latin1");
    const size = Buffer.byteLength(text);
    this.#finish(`${size.toString(16)}\r\n${text}\r\n${lastChunk}`, encodingOf(text, size));
  }

  cut(): void {
    this.departure.happen();
    // A pipelined response may not have the socket yet.
    this.#request.socket.destroy();
    this.#wake?.();
  }

  #finish(text: string, encoding: BufferEncoding = "utf8"): void {
    const response = this.#response;
    response.end(text, encoding);
    // A pipelined response that waits for the socket is not stalled by its reader.
    if (!response.socket || (response.writableLength === 0 && response.socket.writableLength === 0)) return;
    unread.set(this, performance.now());
    if (unread.size === 1) checkLater();
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

const nothing = new Uint8Array();

/** Answers that were sent and not read to their end, with the time of their last chunk, the oldest first. */
const unread = new Map<NodeExchange, number>();
let timer: NodeJS.Timeout | undefined;

/** One timer for all: most answers are read immediately. */
function checkLater(): void {
  timer ??= setTimeout(() => {
    timer = undefined;
    const now = performance.now();
    for (const [exchange, since] of unread) {
      if (now - since < stalledMs) break;
      unread.delete(exchange);
      exchange.cut();
    }
    if (unread.size > 0) checkLater();
  }, stalledMs / 10);
  timer.unref();
}

/** In bytes; NaN: unknown. */
function declaredLength({ headers }: IncomingMessage): number {
  const { "content-length": length, "transfer-encoding": coding } = headers;
  if (length !== undefined) return Number(length);
  // HTTP/2 has no transfer coding for a body of unknown length.
  return coding === undefined && headers[":method"] === undefined ? 0 : Number.NaN;
}

function pathOf(url: string): string {
  // A proxy may send the absolute form, `GET http://host/path`.
  const start = url.startsWith("/") ? 0 : Math.max(0, url.indexOf("/", url.indexOf("://") + 3));
  const query = url.indexOf("?", start);
  return query === -1 ? url.slice(start) : url.slice(start, query);
}

/** `size`: of the text in UTF-8, in bytes. For text in ASCII, Latin-1 gives the same bytes, and is faster. */
function encodingOf({ length }: string, size: number): BufferEncoding {
  return size === length ? "latin1" : "utf8";
}

function uncork(socket: Socket): void {
  socket.uncork();
}

function ignore(): void {}
