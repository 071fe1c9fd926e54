import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { RawData, WebSocket, WebSocketServer } from "ws";
import { writeErrorBody } from "../../wire/apis/error-body.ts";
import type { StreamWriter } from "../../wire/apis/port.ts";
import type { PortSocket, SocketConnection, SocketRequest } from "../../wire/apis/port-state.ts";
import { internalError } from "../../wire/apis/failures.ts";
import { lean } from "../../wire/apis/profile.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { MemoryStore } from "../kv/memory-store.ts";
import type { Store, StoreLimits } from "../kv/store.ts";
import { bodyTooSlow } from "./body-budget.ts";
import type { BodyLease } from "./body-budget.ts";
import { deleteFromConnection } from "./client-stores.ts";
import { Departure } from "./exchange.ts";
import type { HttpExchange, HeaderFields } from "./exchange.ts";
import { admit, handle } from "./handle.ts";
import { Lanes } from "./lanes.ts";
import { NodeExchange } from "./node-exchange.ts";
import { readJsonMessage } from "./read-json.ts";
import { socketAt } from "./routes.ts";
import type { Service } from "./service.ts";
import { random } from "../../wire/random/random.ts";

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
const connectionStoreLimits: StoreLimits = { maxCount: 128, maxBytes: 32 * 1024 * 1024, maxAgeMs: 60 * 60_000 };

/** The maximum number of requests of a connection that wait for their lane, and of their bytes. */
const maxWaiting = 256;
const maxWaitingBytes = 32 * 1024 * 1024;
/** The maximum number of messages of a connection that are not answered: those that run, wait, or are being parsed. */
const maxOpen = 1024;

/** The bytes that may wait for a reader before its source has to wait, too. */
const maxBuffered = 256 * 1024;
/** The bytes of events outside of streams that may wait for a reader before the connection is cut. */
const maxUnsent = 1024 * 1024;

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
  #server: WebSocketServer | undefined;
  readonly #sessions = new Set<Session>();
  #isClosing = false;

  constructor(service: Service, limits: SocketLimits) {
    this.#service = service;
    this.#limits = limits;
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
    // A server without WebSockets starts without the library.
    const { WebSocketServer } = await import("ws");
    response.detachSocket(connection);
    if (connection.destroyed) return;
    this.#server ??= new WebSocketServer({
      noServer: true,
      maxPayload: this.#service.settings.bodyLimit,
      perMessageDeflate: false,
      clientTracking: false,
    });
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

/** A message that is a request, until it has been answered. */
interface Task {
  readonly request: SocketRequest;
  /** The parsed message; undefined: it is not valid JSON. */
  readonly message: unknown;
  readonly bytes: Uint8Array | undefined;
  readonly lease: BodyLease;
}

/** One connection. Its messages are received one after the other; its requests run in lanes. */
class Session {
  readonly #line: WebSocket;
  readonly #by: OpenedBy;
  readonly #connection: SocketConnection;
  readonly #service: Service;
  readonly #limits: SocketLimits;
  readonly #store = new MemoryStore(connectionStoreLimits);
  readonly #born = performance.now();
  readonly #timer: NodeJS.Timeout;
  readonly #lanes: Lanes<Task>;
  readonly #running = new Set<SocketExchange>();
  /** Settles when the connection is closed. */
  readonly #closed: Promise<void>;
  /** Settles when the messages that have arrived are received. */
  #inbox: Promise<void> = Promise.resolve();
  /** The number of messages that are neither answered nor refused. */
  #open = 0;
  /** The bytes of events outside of streams that the client has not taken. */
  #unsentBytes = 0;
  /** The lease of the message that is being received. */
  #lease: BodyLease;
  #lastRequest = performance.now();
  #isAlive = true;
  #isClosing = false;
  #isExpired = false;

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
    this.#connection = socket.connect(random);
    const { maxRunning, maxLanes } = socket;
    this.#lanes = new Lanes<Task>({ maxRunning, maxLanes, maxWaiting, maxWaitingBytes }, (task) =>
      this.#run(task, true),
    );
    this.#service = service;
    this.#limits = limits;
    this.#timer = setInterval(() => this.#check(), limits.pingMs);
    this.#lease = this.#newLease();
    // Before the messages that they complete.
    connection.prependListener("data", (bytes: Uint8Array) => this.#received(bytes.length));
    line.on("pong", () => {
      this.#isAlive = true;
      // Most likely only the pong was counted.
      if (this.#lease.received === 0) this.#takeLease().release();
    });
    // An invalid message (too large, not UTF-8) closes the connection with a code that says why.
    line.on("error", () => {});
    line.on("message", (data) => this.#message(data));
    this.#closed = new Promise((resolve) => line.on("close", () => resolve()));
    line.on("close", () => {
      clearInterval(this.#timer);
      this.#lease.release();
      for (const { lease } of this.#lanes.clear()) lease.release();
      for (const { departure } of this.#running) departure.happen();
      gone();
    });
  }

  /** Sends the events of a stream. Returns a promise if the reader is slow. It resolves when the reader has caught up, or left. */
  send(events: string): Promise<void> | undefined {
    let wait: Promise<void> | undefined;
    for (const message of messagesOf(events)) wait = this.#send(message) ?? wait;
    return wait;
  }

  /** Sends events that no stream waits for. The connection is cut if its client takes too few of them. */
  sendNow(events: string): void {
    if (events === "") return;
    if (this.#unsentBytes > maxUnsent) return this.cut();
    this.#unsentBytes += events.length;
    const taken = (): void => {
      this.#unsentBytes -= events.length;
    };
    const wait = this.send(events);
    if (wait) void wait.then(taken);
    else taken();
  }

  cut(): void {
    this.#line.terminate();
  }

  close(): void {
    this.#isClosing = true;
    // Their answer is that the server is stopping.
    for (const task of this.#lanes.clear()) this.#run(task, false);
    if (this.#open === 0) this.#line.close(1001, "The server is stopping.");
  }

  #send(text: string): Promise<void> | undefined {
    const line = this.#line;
    // An engine that never waits would otherwise keep the connection from closing.
    if (line.readyState !== line.OPEN) return this.#closed;
    if (line.bufferedAmount + text.length < maxBuffered) {
      line.send(text);
      return undefined;
    }
    return new Promise((resolve) => line.send(text, () => resolve()));
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
  #refuse(refusal: FailureError, reason = "There is no memory for the message."): void {
    const { failure } = refusal;
    const request = this.#connection.receive(undefined, 0);
    if (typeof request !== "string") this.sendNow(request.failed(failure.status, writeErrorBody(failure, lean).body));
    // RFC 6455's registry: 1013, Try Again Later.
    this.#line.close(1013, reason);
    this.#line.resume();
    this.#lease.release();
  }

  /** Returns the lease of what has arrived; a new one begins. */
  #takeLease(): BodyLease {
    const lease = this.#lease;
    this.#lease = this.#newLease();
    return lease;
  }

  #message(data: RawData): void {
    const lease = this.#takeLease();
    if (this.#open >= maxOpen) {
      lease.release();
      return this.#refuse(tooManyMessages(), "Too many messages are not answered.");
    }
    this.#open++;
    const bytes = Buffer.isBuffer(data) ? data : Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]);
    lease.complete(bytes.length);
    // It may have waited for memory for this message.
    if (this.#line.isPaused) this.#line.resume();
    this.#inbox = this.#inbox.then(() => this.#receive(bytes, lease)).catch((error) => this.#failed(error, lease));
  }

  /** Answers a message that could not be handled because of a defect of this server. Those after it are received as usual. */
  #failed(error: unknown, lease: BodyLease): void {
    const refusal = internalError(error);
    this.#service.log.error({ cause: refusal.failure.cause }, "a WebSocket message could not be handled");
    try {
      const request = this.#connection.receive(undefined, 0);
      if (typeof request !== "string")
        this.sendNow(request.failed(refusal.failure.status, writeErrorBody(refusal.failure, lean).body));
    } catch {
      // What is broken cannot answer either: the client may send its requests on another connection.
      this.cut();
    }
    this.#settle(lease);
  }

  async #receive(bytes: Uint8Array, lease: BodyLease): Promise<void> {
    this.#lastRequest = performance.now();
    // What is not valid JSON is refused where it is read as a request.
    const message: unknown = await readJsonMessage(bytes).catch(() => undefined);
    const received = this.#connection.receive(message, bytes.length);
    const isAnswered = typeof received === "string";
    if (isAnswered || this.#isExpired || this.#line.readyState !== this.#line.OPEN) {
      this.sendNow(isAnswered ? received : this.#connection.expired);
      return this.#settle(lease);
    }
    const task: Task = { request: received, message, bytes, lease };
    if (message !== undefined && !received.refusal && !this.#isClosing) {
      const full = this.#lanes.add(received.lane, task, bytes.length);
      if (full === null) return;
      received.refusal = full === "too-many-lanes" ? this.#connection.tooManyLanes : tooManyWaiting();
    }
    this.#run(task, false);
  }

  #run(task: Task, isInLane: boolean): void {
    const exchange = new SocketExchange(task, this.#by, this, this.#store);
    this.#running.add(exchange);
    handle(exchange, this.#service)
      .finally(() => this.#ended(task, exchange, isInLane))
      .catch((error: unknown) => this.#failed(error, task.lease));
  }

  #ended({ request, lease }: Task, exchange: SocketExchange, isInLane: boolean): void {
    this.#running.delete(exchange);
    this.#lastRequest = performance.now();
    const { events, evicted, next } = request.ended();
    for (const key of evicted ?? []) void deleteFromConnection(this.#store, key);
    this.sendNow(events);
    if (next && !exchange.departure.happened) return this.#run({ ...next, bytes: undefined, lease }, isInLane);
    if (isInLane) this.#lanes.finish(request.lane);
    this.#settle(lease);
  }

  /** Called when a message is answered. */
  #settle(lease: BodyLease): void {
    lease.release();
    this.#open--;
    // After the last message, which is being sent.
    if (this.#isClosing && this.#open === 0) setImmediate(() => this.close());
  }

  #check(): void {
    const { idleMs, lifeMs } = this.#limits;
    if (!this.#isAlive) return this.cut();
    this.#isAlive = false;
    this.#line.ping();
    const now = performance.now();
    this.#isExpired = now - this.#born > lifeMs;
    if (this.#open > 0) return;
    if (this.#isExpired) {
      this.sendNow(this.#connection.expired);
      this.#line.close(1000, "The connection has reached its maximum duration.");
    } else if (now - this.#lastRequest > idleMs) this.#line.close(1000, "The connection was idle for too long.");
  }
}

function tooManyWaiting(): FailureError {
  return new FailureError({
    message: `Too many requests wait on this connection (at most ${maxWaiting}, with ${maxWaitingBytes} bytes). Send the next one when a response has ended.`,
    status: 429,
    kind: "overloaded",
    param: null,
    code: "websocket_queue_full",
  });
}

function tooManyMessages(): FailureError {
  return new FailureError({
    message: `More than ${maxOpen} messages of this connection are not answered yet.`,
    status: 429,
    kind: "overloaded",
    param: null,
    code: "websocket_queue_full",
  });
}

function pathOf(url: string): string {
  return url.split("?", 1)[0] ?? url;
}

/** The request that opened the connection. */
export interface OpenedBy {
  readonly path: string;
  header(name: string): string | undefined;
  headers(): readonly (readonly [name: string, value: string])[];
}

/** One request on a connection: a message, treated as an HTTP request. The events of its stream are sent as messages. */
class SocketExchange implements HttpExchange {
  readonly method = "POST";
  readonly path: string;
  readonly departure: Departure = new Departure();
  readonly parsedBody: unknown;
  readonly parsedBytes?: Uint8Array;
  readonly connectionStore: Store;
  readonly #by: OpenedBy;
  readonly #request: SocketRequest;
  readonly #bytes: Uint8Array;
  readonly #session: Session;

  constructor({ request, message, bytes }: Task, by: OpenedBy, session: Session, connectionStore: Store) {
    this.path = by.path;
    this.connectionStore = connectionStore;
    this.parsedBody = message;
    if (bytes) this.parsedBytes = bytes;
    this.#bytes = bytes ?? new Uint8Array();
    this.#by = by;
    this.#request = request;
    this.#session = session;
  }

  query(): undefined {}

  queryNames(): readonly string[] {
    return [];
  }

  queries(): readonly string[] {
    return [];
  }

  header(name: string): string | undefined {
    return this.#by.header(name);
  }

  headers(): readonly (readonly [name: string, value: string])[] {
    return this.#by.headers();
  }

  async readBody(): Promise<Uint8Array> {
    return this.#bytes;
  }

  readMessage(): unknown {
    return this.#request.readBody();
  }

  answering(writer: StreamWriter, hasLanes: boolean): void {
    this.#request.answering(writer, hasLanes);
  }

  send(status: number, _headers: HeaderFields, body: string): void {
    if (this.departure.happened) return;
    this.#session.sendNow(this.#request.failed(status, body));
  }

  open(): void {}

  write(text: string): Promise<void> | undefined {
    return this.departure.happened ? undefined : this.#session.send(text);
  }

  end(text: string): void {
    if (!this.departure.happened) void this.#session.send(text);
  }

  cut(): void {
    this.#session.cut();
  }
}

/** The data of each event, without the end mark and comments. */
function messagesOf(events: string): string[] {
  return events.split("\n\n").flatMap((event) => {
    const data = event.slice(event.indexOf("data: ") + "data: ".length);
    return event.includes("data: ") && data.startsWith("{") ? [data] : [];
  });
}
