import type { Dispatcher } from "undici";
import type { ReceivedHeaders } from "./answer-headers.ts";
import type { UpstreamOptions } from "./options.ts";

/** How one origin is asked: undici-transport.ts where there are Node's sockets, fetch-transport.ts elsewhere. */
export interface Transport {
  /** Sends a request; the handler gets the answer, failures included. */
  dispatch(request: TransportRequest, handler: Dispatcher.DispatchHandler): void;
  /** The same for short answers. Rejects when there is no answer. */
  request(request: TransportRequest & { readonly signal: AbortSignal }): Promise<TransportAnswer>;
  /**
   * Whether a timer may serve other requests than the one that set it. Workers end a request's timers with the request, so others that
   * rely on them would wait for ever.
   */
  readonly sharesTimers: boolean;
  /** Makes text of the bytes that `dispatch` gives, cut anywhere. */
  decoder(): Decoder;
  /**
   * For an answer that is packed though nobody asked for that. `encoding`: the header `content-encoding`. null: there is nothing
   * to unpack. Throws an Error for a packing that is not known here.
   */
  unpacker(encoding: string, sink: UnpackerSink): Unpacker | null;
  destroy(): Promise<void>;
}

export interface UnpackerSink {
  data(bytes: Uint8Array): void;
  end(): void;
  error(error: Error): void;
  /** After `write` returned false: it may be called again. */
  drain(): void;
}

export interface Unpacker {
  /** False: wait for `drain`. */
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
  /** On a connection of its own, which nothing was sent over before. */
  readonly fresh?: boolean;
  /** Called when the request goes out on a connection that has served before, and which the server may just be closing. */
  readonly onReusedConnection?: () => void;
}

export interface TransportAnswer {
  readonly statusCode: number;
  readonly headers: ReceivedHeaders;
  readonly body: AsyncIterable<Uint8Array> & { dump(): Promise<unknown> };
}

export interface Decoder {
  write(bytes: Uint8Array): string;
  /** What an incomplete character at the end becomes. */
  end(): string;
}

/** Opens the way to an origin (`https://host:port`). */
export type OpenTransport = (origin: string, options: UpstreamOptions) => Transport;
