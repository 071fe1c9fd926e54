import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { RawData, WebSocket } from "ws";
import { writeErrorBody } from "../apis/error-body.ts";
import { bodyTooLarge } from "../apis/failures.ts";
import type { PortSocket } from "../apis/port-state.ts";
import { lean } from "../apis/profile.ts";
import type { FailureError } from "../core/failure.ts";
import { MemoryStore } from "../kv/memory-store.ts";
import type { Store, StoreLimits } from "../kv/store.ts";
import { bodyTooSlow } from "./body-budget.ts";
import type { BodyLease } from "./body-budget.ts";
import { Departure } from "./exchange.ts";
import type { HttpExchange, HeaderFields } from "./exchange.ts";
import { admit, handle } from "./handle.ts";
import { NodeExchange } from "./node-exchange.ts";
import { socketAt } from "./routes.ts";
import type { Service } from "./service.ts";

/** Time limits of a connection, in milliseconds. */
export interface SocketLimits {
  /** The interval of pings. The connection is closed if a ping is not answered before the next one. */
  readonly pingMs: number;
  /** The time without a request after which the connection is closed. */
  readonly idleMs: number;
  /** The maximum lifetime; OpenAI's is one hour. */
  readonly lifeMs: number;
}

const standardLimits: SocketLimits = { pingMs: 30_000, idleMs: 15 * 60_000, lifeMs: 60 * 60_000 };

/** The limits of a connection's store, which keeps conversations that must not be stored permanently. */
const connectionStoreLimits: StoreLimits = { maxCount: 16, maxBytes: 16 * 1024 * 1024, maxAgeMs: 60 * 60_000 };

/** The bytes that may wait for a reader before its source has to wait, too. */
const maxBuffered = 256 * 1024;

/** For `createServer` of node:http: a request counts as an upgrade only if its path has a WebSocket; otherwise the header is ignored. */
export class UpgradableRequest extends IncomingMessage {
  /** Whether the client requests any upgrade. Only declared, because Node sets it during construction. */
  declare private hasUpgrade: boolean | null | undefined;

  get upgrade(): boolean {
    // Called for every request; most request no upgrade.
    if (this.hasUpgrade !== true) return false;
    const { method, headers, url = "" } = this;
    const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
    const isWebSocket = method === "GET" && !hasBody && headers.upgrade?.toLowerCase() === "websocket";
    return isWebSocket && socketAt(pathOf(url)) !== undefined;
  }

  set upgrade(hasUpgrade: boolean | null) {
    this.hasUpgrade = hasUpgrade;
  }
}

/** Opens the WebSocket side of a server. */
export function openWebSockets(service: Service): WebSockets {
  return new WebSockets(service, standardLimits);
}

/** The WebSocket connections of one server. */
export class WebSockets {
  readonly #service: Service;
  readonly #limits: SocketLimits;
  readonly #server: WebSocketServer;
  readonly #sessions = new Set<Session>();
  #isClosing = false;

  constructor(service: Service, limits: SocketLimits) {
    this.#service = service;
    this.#limits = limits;
    this.#server = new WebSocketServer({
      noServer: true,
      maxPayload: service.settings.bodyLimit,
      perMessageDeflate: false,
      clientTracking: false,
    });
  }

  /** Answers an upgrade request. */
  async upgrade(request: IncomingMessage, connection: Duplex, head: Buffer): Promise<void> {
    connection.on("error", () => connection.destroy());
    // Always a socket: with or without TLS.
    if (!(connection instanceof Socket)) return void connection.destroy();
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(connection);
    response.once("finish", () => connection.end());
    const exchange = new NodeExchange(request, response);
    const socket = socketAt(exchange.path);
    if (!(await admit(exchange, this.#service)) || !socket) return;
    response.detachSocket(connection);
    if (connection.destroyed) return;
    this.#server.handleUpgrade(request, connection, head, (line) => {
      const gone = (): void => void this.#sessions.delete(session);
      const session = new Session(line, connection, exchange, socket, this.#service, this.#limits, gone);
      this.#sessions.add(session);
      if (this.#isClosing) session.close();
    });
  }

  /** Accepts no more requests: connections are closed when their current request is answered. */
  close(): void {
    this.#isClosing = true;
    for (const session of this.#sessions) session.close();
  }

  /** Closes all connections immediately. */
  cut(): void {
    for (const session of this.#sessions) session.cut();
  }
}

/** One connection, which answers one request at a time. */
class Session implements MessageLine {
  readonly #line: WebSocket;
  readonly #by: OpenedBy;
  readonly #socket: PortSocket;
  readonly #service: Service;
  readonly #limits: SocketLimits;
  readonly #store = new MemoryStore(connectionStoreLimits);
  readonly #born = performance.now();
  readonly #timer: NodeJS.Timeout;
  #running: SocketExchange | null = null;
  /** The lease of the message that is being received. */
  #lease: BodyLease;
  #lastRequest = performance.now();
  #isAlive = true;
  #isClosing = false;

  constructor(
    line: WebSocket,
    connection: Socket,
    by: OpenedBy,
    socket: PortSocket,
    service: Service,
    limits: SocketLimits,
    gone: () => void,
  ) {
    this.#line = line;
    this.#by = by;
    this.#socket = socket;
    this.#service = service;
    this.#limits = limits;
    this.#timer = setInterval(() => this.#check(), limits.pingMs);
    this.#lease = this.#newLease();
    connection.on("data", (bytes: Uint8Array) => this.#received(bytes.length));
    line.on("pong", () => {
      this.#isAlive = true;
    });
    // An invalid message (too large, not UTF-8) closes the connection with a code that says why.
    line.on("error", () => {});
    line.on("message", (data) => this.#request(data));
    line.on("close", () => {
      clearInterval(this.#timer);
      this.#lease.release();
      this.#running?.departure.happen();
      gone();
    });
  }

  send(text: string): Promise<void> | undefined {
    const line = this.#line;
    if (line.readyState !== line.OPEN) return undefined;
    if (line.bufferedAmount + text.length < maxBuffered) {
      line.send(text);
      return undefined;
    }
    return new Promise((resolve) => line.send(text, () => resolve()));
  }

  cut(): void {
    this.#line.terminate();
  }

  close(): void {
    this.#isClosing = true;
    if (!this.#running) this.#line.close(1001, "The server is stopping.");
  }

  #newLease(): BodyLease {
    const lease = this.#service.bodies.lease();
    lease.onTooSlow = () => this.#refuse(bodyTooSlow());
    return lease;
  }

  /** Counts the bytes of a message, with its frames, as they arrive. Pauses reading while the budget is used up. */
  #received(bytes: number): void {
    const lease = this.#lease;
    const wait = lease.size === 0 ? lease.begin(Number.NaN) : lease.arrived(bytes);
    if (!wait) return;
    this.#line.pause();
    wait.then(
      () => this.#line.resume(),
      (error: unknown) => this.#refuse(error as FailureError),
    );
  }

  /** Closes the connection because a message cannot be received. */
  #refuse({ failure }: FailureError): void {
    void this.send(this.#socket.writeFailure(failure.status, writeErrorBody(failure, lean).body));
    // RFC 6455's registry: 1013, Try Again Later.
    this.#line.close(1013, "There is no memory for the message.");
    this.#line.resume();
    this.#lease.release();
  }

  #request(data: RawData): void {
    const lease = this.#lease;
    this.#lease = this.#newLease();
    if (this.#running) {
      lease.release();
      void this.send(this.#socket.writeFailure(400, this.#socket.busy));
      return;
    }
    this.#lastRequest = performance.now();
    const message = Buffer.isBuffer(data) ? data : Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]);
    const exchange = new SocketExchange(message, this.#by, this.#socket, this, this.#store, () => {
      this.#running = null;
      this.#lastRequest = performance.now();
      // After the last message, which is being sent.
      if (this.#isClosing) setImmediate(() => this.close());
    });
    this.#running = exchange;
    lease.complete(message.length);
    void handle(exchange, this.#service).finally(() => lease.release());
  }

  #check(): void {
    const { idleMs, lifeMs } = this.#limits;
    if (!this.#isAlive) return this.cut();
    this.#isAlive = false;
    this.#line.ping();
    if (this.#running) return;
    const now = performance.now();
    if (now - this.#born > lifeMs) {
      void this.send(this.#socket.writeFailure(400, this.#socket.tooOld));
      this.#line.close(1000, "The connection has lasted as long as one may.");
    } else if (now - this.#lastRequest > idleMs) this.#line.close(1000, "There was no request for long.");
  }
}

function pathOf(url: string): string {
  return url.split("?", 1)[0] ?? url;
}

/** A connection that sends messages. */
export interface MessageLine {
  /** Returns a promise if the reader is slow. It resolves when the reader has caught up, or left. */
  send(text: string): Promise<void> | undefined;
  /** Closes the connection immediately. */
  cut(): void;
}

/** The request that opened the connection. */
export interface OpenedBy {
  readonly path: string;
  header(name: string): string | undefined;
  headers(): readonly (readonly [name: string, value: string])[];
}

/** One request on a connection: a message, treated as an HTTP request. The events of its stream are sent as messages. */
export class SocketExchange implements HttpExchange {
  readonly method = "POST";
  readonly path: string;
  readonly departure: Departure = new Departure();
  readonly connectionStore: Store;
  readonly #by: OpenedBy;
  readonly #socket: PortSocket;
  readonly #line: MessageLine;
  readonly #message: Uint8Array;
  readonly #onEnd: () => void;

  /** `onEnd` is called when the answer is complete, before its last message is sent. */
  constructor(
    message: Uint8Array,
    by: OpenedBy,
    socket: PortSocket,
    line: MessageLine,
    connectionStore: Store,
    onEnd: () => void,
  ) {
    this.path = by.path;
    this.connectionStore = connectionStore;
    this.#message = message;
    this.#by = by;
    this.#socket = socket;
    this.#line = line;
    this.#onEnd = onEnd;
  }

  query(): undefined {}

  queries(): readonly string[] {
    return [];
  }

  header(name: string): string | undefined {
    return this.#by.header(name);
  }

  headers(): readonly (readonly [name: string, value: string])[] {
    return this.#by.headers();
  }

  async readBody(limit: number): Promise<Uint8Array> {
    if (this.#message.length > limit) throw bodyTooLarge(limit);
    return this.#message;
  }

  readMessage(body: unknown): unknown {
    return this.#socket.readMessage(body);
  }

  send(status: number, _headers: HeaderFields, body: string): void {
    this.#onEnd();
    void this.#line.send(this.#socket.writeFailure(status, body));
  }

  open(): void {}

  write(text: string): Promise<void> | undefined {
    let wait: Promise<void> | undefined;
    for (const message of messagesOf(text)) wait = this.#line.send(message) ?? wait;
    return wait;
  }

  end(text: string): void {
    this.#onEnd();
    void this.write(text);
  }

  cut(): void {
    this.#line.cut();
  }
}

/** The data of each event, without the end mark and comments. */
function messagesOf(events: string): string[] {
  return events.split("\n\n").flatMap((event) => {
    const data = event.slice(event.indexOf("data: ") + "data: ".length);
    return event.includes("data: ") && data.startsWith("{") ? [data] : [];
  });
}
