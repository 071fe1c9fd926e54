import type { Store } from "../kv/store.ts";
import { bodyTooLarge } from "../apis/failures.ts";
import type { PortSocket } from "../apis/port-socket.ts";
import { Departure } from "./departure.ts";
import type { Exchange, HeaderFields } from "./exchange.ts";

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
