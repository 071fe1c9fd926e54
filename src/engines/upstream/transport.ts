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
  destroy(): Promise<void>;
}

export interface TransportRequest {
  readonly method: "GET" | "POST";
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
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
