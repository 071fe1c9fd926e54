import { bodyAlreadyRead, bodyTooLarge } from "../../wire/apis/failures.ts";
import { streamChunks } from "../../wire/apis/sse/stream-chunks.ts";
import type { BodyLease } from "./body-budget.ts";
import { Departure, ClientGone, withoutBase } from "./exchange.ts";
import { readAll } from "./body-budget.ts";
import type { ExchangeBytes, HttpExchange, HeaderFields } from "./exchange.ts";

/** An exchange over the web's Request and Response: Hono, Next.js, Bun, Deno, Workers. */
export class FetchExchange implements HttpExchange {
  readonly method: string;
  readonly path: string;
  readonly departure: Departure = new Departure();
  /** Resolves when the status and headers are known; rejects if the request is aborted before. */
  readonly response: Promise<Response>;
  readonly #request: Request;
  readonly #encoder = new TextEncoder();
  #respond: (response: Response) => void = () => {};
  #refuse: (reason: unknown) => void = () => {};
  #body: ReadableStreamDefaultController<Uint8Array> | undefined;
  #wake: (() => void) | undefined;

  /** `basePath` is removed from the path of the request. */
  constructor(request: Request, basePath = "") {
    this.#request = request;
    this.method = request.method;
    this.path = withoutBase(new URL(request.url).pathname, basePath);
    this.response = new Promise((resolve, reject) => {
      this.#respond = resolve;
      this.#refuse = reject;
    });
    if (request.signal.aborted) this.#left();
    else request.signal.addEventListener("abort", () => this.#left(), { once: true });
  }

  query(name: string): string | undefined {
    return this.queries(name)[0];
  }

  queries(name: string): readonly string[] {
    return new URL(this.#request.url).searchParams.getAll(name);
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined;
  }

  queryNames(): readonly string[] {
    return [...new Set(new URL(this.#request.url).searchParams.keys())];
  }

  headers(): readonly (readonly [name: string, value: string])[] {
    return [...this.#request.headers];
  }

  async readBody(limit: number, lease: BodyLease): Promise<Uint8Array> {
    const declared = Number(this.header("content-length") ?? Number.NaN);
    if (declared > limit) throw bodyTooLarge(limit);
    const { body, bodyUsed } = this.#request;
    // In place of a body that was read, srvx (h3) has none.
    if (bodyUsed || (!body && declared > 0)) throw bodyAlreadyRead();
    if (!body) return new Uint8Array();
    const wait = lease.begin(declared);
    if (wait) await wait;
    return readAll(body, limit, lease, (cause) => new ClientGone({ cause }));
  }

  get bytes(): ExchangeBytes {
    return {
      search: new URL(this.#request.url).search,
      read: (limit) => this.#stream(limit),
      write: (bytes) => this.#enqueue(bytes),
    };
  }

  #stream(limit: number): AsyncIterable<Uint8Array> | undefined {
    const declared = Number(this.header("content-length") ?? Number.NaN);
    if (declared > limit) throw bodyTooLarge(limit);
    const { body, bodyUsed } = this.#request;
    if (bodyUsed || (!body && declared > 0)) throw bodyAlreadyRead();
    return body ? limited(body, limit) : undefined;
  }

  send(status: number, headers: HeaderFields, body: string): void {
    this.#respond(new Response(this.#hasNoBody(status) ? null : body, { status, headers }));
  }

  /** Response refuses even an empty body where a status has none. */
  #hasNoBody(status: number): boolean {
    return status === 204 || status === 205 || status === 304 || this.method === "HEAD";
  }

  open(status: number, headers: HeaderFields): void {
    if (this.#hasNoBody(status)) return this.send(status, headers, "");
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#body = controller;
      },
      pull: () => this.#wakeUp(),
      cancel: () => this.#left(),
    });
    this.#respond(new Response(body, { status, headers }));
  }

  write(text: string): Promise<void> | undefined {
    return this.#enqueue(this.#encoder.encode(text));
  }

  #enqueue(bytes: Uint8Array): Promise<void> | undefined {
    const body = this.#body;
    if (!body || this.departure.happened) return undefined;
    body.enqueue(bytes);
    if ((body.desiredSize ?? 0) > 0) return undefined;
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  end(text: string): void {
    const body = this.#body;
    this.#body = undefined;
    if (!body || this.departure.happened) return;
    if (text !== "") body.enqueue(this.#encoder.encode(text));
    body.close();
  }

  cut(): void {
    const body = this.#body;
    this.#body = undefined;
    this.departure.happen();
    body?.error(new Error("The reader was too slow."));
    this.#wakeUp();
  }

  #left(): void {
    this.departure.happen();
    const { reason } = this.#request.signal as { reason: unknown };
    this.#refuse(reason);
    const body = this.#body;
    this.#body = undefined;
    // Deno also cancels the body, a moment later; it must not be errored then.
    if (this.#request.signal.aborted && body) setTimeout(() => breakOff(body, reason), 0);
    this.#wakeUp();
  }

  #wakeUp(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}

async function* limited(body: ReadableStream<Uint8Array>, limit: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of streamChunks(body)) {
    size += chunk.length;
    if (size > limit) throw bodyTooLarge(limit);
    yield chunk;
  }
}

function breakOff(body: ReadableStreamDefaultController<Uint8Array>, reason: unknown): void {
  if (body.desiredSize !== null) body.error(reason);
}
