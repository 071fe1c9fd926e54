import type { Store } from "../../kv/store.ts";
import type { BodyLease } from "../body-budget.ts";
import type { Departure, Exchange, HeaderFields } from "../exchange.ts";
import type { WatchedRequest } from "./watched-request.ts";

/** An exchange that shows what comes and goes to whoever watches its request. */
export class InspectedExchange implements Exchange {
  readonly #inner: Exchange;
  readonly #watched: WatchedRequest;
  readonly method: string;
  readonly path: string;
  readonly departure: Departure;
  readonly isFromLoopback?: boolean;
  readonly parsedBody?: unknown;
  readonly connectionStore?: Store;
  readonly readMessage?: (body: unknown) => unknown;

  constructor(inner: Exchange, watched: WatchedRequest) {
    this.#inner = inner;
    this.#watched = watched;
    this.method = inner.method;
    this.path = inner.path;
    this.departure = inner.departure;
    if (inner.isFromLoopback !== undefined) this.isFromLoopback = inner.isFromLoopback;
    if (inner.parsedBody !== undefined) this.parsedBody = inner.parsedBody;
    if (inner.connectionStore) this.connectionStore = inner.connectionStore;
    if (inner.readMessage) this.readMessage = (body) => inner.readMessage?.(body);
  }

  query(name: string): string | undefined {
    return this.#inner.query(name);
  }

  header(name: string): string | undefined {
    return this.#inner.header(name);
  }

  headers(): readonly (readonly [name: string, value: string])[] {
    return this.#inner.headers();
  }

  async readBody(limit: number, lease: BodyLease): Promise<Uint8Array> {
    const body = await this.#inner.readBody(limit, lease);
    const encoding = this.header("content-encoding")?.trim().toLowerCase() ?? "";
    // What was packed says nothing as it came; what was understood of it does.
    if (encoding === "" || encoding === "identity") this.#watched.came(body);
    return body;
  }

  send(status: number, headers: HeaderFields, body: string): void {
    this.#watched.opens(headers);
    this.#watched.tells(body);
    this.#inner.send(status, headers, body);
  }

  open(status: number, headers: HeaderFields): void {
    this.#watched.opens(headers);
    this.#inner.open(status, headers);
  }

  write(text: string): Promise<void> | undefined {
    this.#watched.tells(text);
    return this.#inner.write(text);
  }

  end(text: string): void {
    this.#watched.tells(text);
    this.#inner.end(text);
  }

  cut(): void {
    this.#inner.cut();
  }
}
