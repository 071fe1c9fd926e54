import type { Socket } from "node:net";
import { buildConnector, Client } from "undici";
import type { Dispatcher } from "undici";
import type { TransportRequest } from "./transport.ts";

export interface UpstreamClientOptions {
  readonly client: Client.Options;
  readonly connection: Omit<buildConnector.BuildOptions, "onread">;
  /** Wraps the function that connects. */
  wrapConnector(connector: buildConnector.connector): buildConnector.connector;
}

/** What a request says in addition to undici's options. */
export interface UpstreamDispatchOptions extends Pick<TransportRequest, "onReusedConnection"> {
  /** The handler copies what it keeps of the bytes that it is given: their memory is used again. */
  readonly copiesBytes?: boolean;
}

/** All plain sockets are read into this memory, one after the other: what a read has brought is parsed before the next read. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * Windows reads ahead, for several sockets at the same time, so they cannot share memory. Bun and Deno may not know `onread`. All of
 * them read streams.
 */
const sharesReadBuffer =
  process.platform !== "win32" && process.versions["bun"] === undefined && process.versions["deno"] === undefined;

/**
 * A client of undici (one connection at a time) that
 * - notifies a request whose connection has served before,
 * - reads plain sockets without a stream between, which allocates a buffer and schedules a tick for each read,
 * - pauses the socket and never undici's parser: undici 7 throws an AssertionError that nothing can catch when a connection ends while its
 *   parser is paused (nodejs/undici#5360).
 */
export class UpstreamClient extends Client {
  #socket: Socket | undefined;
  /** Requests that the connection has served, with the present one. */
  #served = 0;
  #isPaused = false;
  /** Present: the socket has no stream, and what it reads is passed here. */
  readonly #reads: DirectReads | undefined;

  constructor(url: string | URL, { client, connection, wrapConnector }: UpstreamClientOptions) {
    const reads = sharesReadBuffer && new URL(url).protocol === "http:" ? new DirectReads() : undefined;
    const connector = wrapConnector(
      buildConnector({ ...connection, ...(reads && { onread: reads.onread }) } as buildConnector.BuildOptions),
    );
    super(url, {
      ...client,
      connect: (to, callback) =>
        connector(to, (...[error, socket]) => {
          if (error) return callback(error, null);
          this.#use(socket);
          callback(null, socket);
        }),
    });
    this.#reads = reads;
    // A connection is opened for a request that is waiting.
    this.on("connect", () => (this.#served = 1));
    this.on("disconnect", () => {
      this.#served = 0;
      this.#socket = undefined;
    });
  }

  override dispatch(
    options: Dispatcher.DispatchOptions & UpstreamDispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    if (this.#served++ > 0) options.onReusedConnection?.();
    return super.dispatch(options, new PausingHandler(handler, this, options.copiesBytes === true));
  }

  /** The head of an answer has been read: what follows is its body. */
  bodyBegins(): void {
    if (this.#reads) this.#reads.keepsBytes = false;
  }

  /** Passes a chunk of a body on: with the others of the same read, where sockets are read directly. */
  bodyArrives(chunk: Buffer, receive: (bytes: Buffer) => void): void {
    if (this.#reads) this.#reads.join(chunk, receive);
    else receive(chunk);
  }

  /** Passes on what has arrived of the body. */
  flushBody(): void {
    this.#reads?.flush();
  }

  answerEnds(): void {
    if (this.#reads) this.#reads.keepsBytes = true;
    // The answer to the next request, or the end of the connection.
    this.resumeReading();
  }

  pauseReading(): void {
    this.#isPaused = true;
    if (this.#reads) this.#reads.isPaused = true;
  }

  resumeReading(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    const socket = this.#socket;
    if (this.#reads) {
      this.#reads.isPaused = false;
      socket?.resume();
      // What the stream holds is parsed later: the parser may be what calls.
    } else if (socket) process.nextTick(() => socket.emit("readable"));
  }

  #use(socket: Socket): void {
    this.#socket = socket;
    this.#isPaused = false;
    if (this.#reads) this.#reads.use(socket);
    else {
      const read = socket.read.bind(socket);
      // undici reads when the socket emits "readable". What is not read fills the stream, which stops the socket then.
      socket.read = (size?: number) => (this.#isPaused && size !== 0 ? null : (read(size) as unknown));
    }
  }
}

/** Passes what a socket reads to undici's parser, which takes it by `socket.read()`. */
class DirectReads {
  isPaused = false;
  /** undici's parser keeps the bytes of a head that arrives in several parts. */
  keepsBytes = true;
  #socket: Socket | undefined;
  #bytes: Uint8Array | null = null;
  /**
   * The chunks of a body in the present read. They are moved next to each other in its memory, over the sizes between them, which were
   * parsed. So the whole read is decoded once; a burst has hundreds of chunks.
   */
  #joined: { readonly memory: Uint8Array; readonly from: number; to: number } | undefined;
  #receive: ((bytes: Buffer) => void) | undefined;

  readonly onread = {
    buffer: readBuffer,
    /** Returns whether to go on reading. */
    callback: (size: number): boolean => {
      const bytes = readBuffer.subarray(0, size);
      this.#bytes = this.keepsBytes ? Buffer.from(bytes) : bytes;
      this.#socket?.emit("readable");
      this.#bytes = null;
      this.flush();
      return !this.isPaused;
    },
  };

  use(socket: Socket): void {
    this.isPaused = false;
    this.keepsBytes = true;
    this.#socket = socket;
    const read = socket.read.bind(socket);
    // `read(0)` starts reading, and emits "end" at the end.
    socket.read = (size?: number) => (size === 0 ? (read(0) as unknown) : this.#take());
  }

  join({ buffer, byteOffset, length }: Buffer, receive: (bytes: Buffer) => void): void {
    const joined = this.#joined;
    if (joined?.memory.buffer === buffer && this.#receive === receive) {
      joined.memory.copyWithin(joined.to, byteOffset, byteOffset + length);
      joined.to += length;
    } else {
      this.flush();
      this.#joined = { memory: new Uint8Array(buffer), from: byteOffset, to: byteOffset + length };
      this.#receive = receive;
    }
  }

  flush(): void {
    const [joined, receive] = [this.#joined, this.#receive];
    if (!joined) return;
    this.#joined = undefined;
    this.#receive = undefined;
    receive?.(Buffer.from(joined.memory.buffer, joined.from, joined.to - joined.from));
  }

  #take(): Uint8Array | null {
    const bytes = this.#bytes;
    this.#bytes = null;
    return bytes;
  }
}

/** The handler of a request, as undici calls it: when it wants a pause, the client pauses the socket instead of the parser. */
class PausingHandler implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #client: UpstreamClient;
  readonly #copiesBytes: boolean;
  /** The connection may serve another request. */
  #isOver = false;
  #abort: ((error?: Error) => void) | undefined;

  constructor(handler: Dispatcher.DispatchHandler, client: UpstreamClient, copiesBytes: boolean) {
    this.#handler = handler;
    this.#client = client;
    this.#copiesBytes = copiesBytes;
  }

  onConnect(abort: (error?: Error) => void): void {
    this.#abort = abort;
    this.#handler.onConnect?.(abort);
  }

  onHeaders(status: number, headers: Buffer[], _resume: () => void, statusText: string): boolean {
    const resume = (): void => {
      if (!this.#isOver) this.#client.resumeReading();
    };
    const goesOn = this.#handler.onHeaders?.(status, headers, resume, statusText);
    if (status >= 200) this.#client.bodyBegins();
    if (goesOn === false) this.#client.pauseReading();
    return true;
  }

  onData(chunk: Buffer): boolean {
    this.#client.bodyArrives(chunk, this.#receive);
    return true;
  }

  readonly #receive = (bytes: Buffer): void => {
    if (this.#isOver) return;
    try {
      const goesOn = this.#handler.onData?.(this.#copiesBytes ? bytes : Buffer.from(bytes));
      if (goesOn === false) this.#client.pauseReading();
    } catch (error) {
      // As undici does where a handler throws.
      this.#abort?.(error as Error);
    }
  };

  onComplete(trailers: string[] | null): void {
    this.#client.flushBody();
    this.#isOver = true;
    this.#client.answerEnds();
    this.#handler.onComplete?.(trailers);
  }

  onError(error: Error): void {
    this.#client.flushBody();
    this.#isOver = true;
    this.#handler.onError?.(error);
  }
}
