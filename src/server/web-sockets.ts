import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { RawData, WebSocket } from "ws";
import { writeErrorBody } from "../apis/error-body.ts";
import { bodyTooLarge } from "../apis/failures.ts";
import type { PortSocket } from "../apis/port-socket.ts";
import { lean } from "../apis/profile.ts";
import type { FailureError } from "../core/failure.ts";
import { MemoryStore } from "../kv/memory-store.ts";
import type { Store, StoreLimits } from "../kv/store.ts";
import { bodyTooSlow } from "./body-budget.ts";
import type { BodyLease } from "./body-budget.ts";
import { Departure } from "./exchange.ts";
import type { Exchange, HeaderFields } from "./exchange.ts";
import { admit, handle } from "./handle.ts";
import { NodeExchange } from "./node-exchange.ts";
import { socketAt } from "./routes.ts";
import type { Service } from "./service.ts";

/** How long a connection may last, in milliseconds. */
export interface SocketLimits {
  /** It is pinged so often, and given up when a ping is not answered until the next one. */
  readonly pingMs: number;
  /** Without a request. */
  readonly idleMs: number;
  /** At all; OpenAI's lasts an hour. */
  readonly lifeMs: number;
}

const standardLimits: SocketLimits = { pingMs: 30_000, idleMs: 15 * 60_000, lifeMs: 60 * 60_000 };

/** What a connection keeps for itself: conversations that must leave no trace, for as long as it lasts. */
const kept: StoreLimits = { maxCount: 16, maxBytes: 16 * 1024 * 1024, maxAgeMs: 60 * 60_000 };

/** So many bytes may wait for a reader; then its source waits, too. */
const mostWaiting = 256 * 1024;

/** A request, for `createServer` of node:http: it is an upgrade only where there is a WebSocket; else it is what it would be without. */
export class UpgradableRequest extends IncomingMessage {
  /** Whether the client asks for any upgrade, as Node found. Declared only: Node sets it while this is being constructed. */
  declare private asks: boolean | null | undefined;

  get upgrade(): boolean {
    // Asked of every request; most ask for nothing.
    if (this.asks !== true) return false;
    const { method, headers, url = "" } = this;
    const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
    const isWebSocket = method === "GET" && !hasBody && headers.upgrade?.toLowerCase() === "websocket";
    return isWebSocket && socketAt(pathOf(url)) !== undefined;
  }

  set upgrade(asks: boolean | null) {
    this.asks = asks;
  }
}

/** Takes the connections by WebSocket of a server. */
export function openWebSockets(service: Service): WebSockets {
  return new WebSockets(service, standardLimits);
}

/** The connections by WebSocket of one server. */
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

  /** Answers a request for an upgrade, where `UpgradableRequest` says that it is one. */
  async upgrade(request: IncomingMessage, connection: Duplex, head: Buffer): Promise<void> {
    connection.on("error", () => connection.destroy());
    // Of a server without TLS, it is one.
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

  /** Takes no more requests: connections end when what they ask for is answered. */
  close(): void {
    this.#isClosing = true;
    for (const session of this.#sessions) session.close();
  }

  /** Ends all at once. */
  cut(): void {
    for (const session of this.#sessions) session.cut();
  }
}

/** One connection: it answers one request after the other. */
class Session implements MessageLine {
  readonly #line: WebSocket;
  readonly #by: OpenedBy;
  readonly #socket: PortSocket;
  readonly #service: Service;
  readonly #limits: SocketLimits;
  readonly #store = new MemoryStore(kept);
  readonly #born = performance.now();
  readonly #timer: NodeJS.Timeout;
  #running: SocketExchange | null = null;
  /** For the message that is being received. */
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
    this.#timer = setInterval(() => this.#look(), limits.pingMs);
    this.#lease = this.#newLease();
    connection.on("data", (bytes: Uint8Array) => this.#received(bytes.length));
    line.on("pong", () => {
      this.#isAlive = true;
    });
    // What is wrong with a message (too large, not UTF-8) is told by the code with which the connection closes.
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
    if (line.bufferedAmount + text.length < mostWaiting) {
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

  /** Counts the bytes of a message before it is complete, its frames included; when the budget is used up, no more are read. */
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

  /** Ends the connection because of a message that cannot be received. */
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
      // Behind the last message, which is sent just now.
      if (this.#isClosing) setImmediate(() => this.close());
    });
    this.#running = exchange;
    lease.complete(message.length);
    void handle(exchange, this.#service).finally(() => lease.release());
  }

  #look(): void {
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

/** A connection that carries messages both ways. */
export interface MessageLine {
  /** A promise: the reader is slow; it resolves when it has caught up, or left. */
  send(text: string): Promise<void> | undefined;
  /** Breaks it off. */
  cut(): void;
}

/** What the connection was opened with. */
export interface OpenedBy {
  readonly path: string;
  header(name: string): string | undefined;
  headers(): readonly (readonly [name: string, value: string])[];
}

/** One request of a connection: a message, as if it had come by HTTP. The events of its stream go back as messages. */
export class SocketExchange implements Exchange {
  readonly method = "POST";
  readonly path: string;
  readonly departure: Departure = new Departure();
  readonly connectionStore: Store;
  readonly #by: OpenedBy;
  readonly #socket: PortSocket;
  readonly #line: MessageLine;
  readonly #message: Uint8Array;
  readonly #over: () => void;

  /** `over` is called when the answer is complete, before its last message is sent. */
  constructor(
    message: Uint8Array,
    by: OpenedBy,
    socket: PortSocket,
    line: MessageLine,
    connectionStore: Store,
    over: () => void,
  ) {
    this.path = by.path;
    this.connectionStore = connectionStore;
    this.#message = message;
    this.#by = by;
    this.#socket = socket;
    this.#line = line;
    this.#over = over;
  }

  query(): undefined {}

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
    this.#over();
    void this.#line.send(this.#socket.writeFailure(status, body));
  }

  open(): void {}

  write(text: string): Promise<void> | undefined {
    let wait: Promise<void> | undefined;
    for (const message of messagesOf(text)) wait = this.#line.send(message) ?? wait;
    return wait;
  }

  end(text: string): void {
    this.#over();
    void this.write(text);
  }

  cut(): void {
    this.#line.cut();
  }
}

/** The data of each event of a stream; without the mark of its end, and without comments. */
function messagesOf(events: string): string[] {
  return events.split("\n\n").flatMap((event) => {
    const data = event.slice(event.indexOf("data: ") + "data: ".length);
    return event.includes("data: ") && data.startsWith("{") ? [data] : [];
  });
}
