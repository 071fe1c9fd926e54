import type { Dispatcher } from "undici";
import type { UpstreamOptions } from "./options.ts";

/** Sends requests to one origin: undici-transport.ts where Node's sockets are available, fetch-transport.ts elsewhere. */
export interface Transport {
  /**
   * Sends a request. The handler receives the answer and all failures. The bytes that it is given are valid only during the call: their
   * memory is used for the next read.
   */
  dispatch(request: TransportRequest, handler: Dispatcher.DispatchHandler): void;
  /** Sends a request with a short answer. Rejects when there is no answer. */
  request(request: TransportRequest & { readonly signal: AbortSignal }): Promise<TransportAnswer>;
  /**
   * Sends a request whose body and answer are streamed, and not changed: an answer stays compressed, except with `fetch`. Sends it once.
   * Rejects when there is no answer.
   */
  pass(request: StreamedRequest): Promise<TransportAnswer>;
  /**
   * Whether a timer may serve other requests than the one that set it. Workers (the edge runtimes) end a request's timers with the
   * request, so a timer must not be shared there.
   */
  readonly sharesTimers: boolean;
  /** Calls `read` when all the data that has arrived was passed to the handlers of its requests. */
  afterReads(read: () => void): void;
  /** Decodes the bytes of `dispatch`, which may be split anywhere. */
  decoder(): Decoder;
  /**
   * Decompresses an answer that is compressed although the request asks for `identity`. `encoding`: the header `content-encoding`. Returns
   * null if there is nothing to decompress. Throws an Error if the encoding is unknown.
   */
  unpacker(encoding: string, sink: UnpackerSink): Unpacker | null;
  destroy(): Promise<void>;
}

export interface UnpackerSink {
  data(bytes: Uint8Array): void;
  end(): void;
  error(error: Error): void;
  /** `write`, which returned false before, may be called again. */
  drain(): void;
}

export interface Unpacker {
  /** false: wait for `drain`. */
  write(bytes: Uint8Array): boolean;
  end(): void;
  pause(): void;
  resume(): void;
  destroy(): void;
}

export interface TransportRequest {
  readonly method: "GET" | "POST";
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Use a new connection. */
  readonly fresh?: boolean;
  /** Called when the request is sent on a connection that has served before: the server may be closing it as idle. */
  readonly onReusedConnection?: () => void;
}

export interface StreamedRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AsyncIterable<Uint8Array> | undefined;
  readonly signal: AbortSignal;
}

export interface TransportAnswer {
  readonly statusCode: number;
  readonly headers: ReceivedHeaders;
  readonly body: AsyncIterable<Uint8Array> & { dump(): Promise<unknown> };
}

/** Headers as undici gives them, with lower-case names. */
export type ReceivedHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface Decoder {
  write(bytes: Uint8Array): string;
  /** The replacement of an incomplete character at the end. */
  end(): string;
}

/** Opens the transport to an origin (`https://host:port`). */
export type OpenTransport = (origin: string, options: UpstreamOptions) => Transport;

/** Reads a body as UTF-8. Rejects with the error that `tooLong` makes if it has more than `limit` characters. */
export async function readBody(body: TransportAnswer["body"], limit: number, tooLong: () => Error): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > limit) throw tooLong();
  }
  return text;
}

/** A timer that does not keep the process alive. In runtimes without processes timers are numbers. */
export function inBackground(timer: NodeJS.Timeout): NodeJS.Timeout {
  if (typeof timer === "object") timer.unref();
  return timer;
}
