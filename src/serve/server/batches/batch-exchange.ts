import type { LineAnswer } from "../../../wire/apis/batches/form.ts";
import type { JsonObject } from "../../../wire/core/json.ts";
import { Departure } from "../exchange.ts";
import type { HeaderFields, HttpExchange, LineOfBatch } from "../exchange.ts";

/** The answer of a request, and after how many milliseconds the source asks for it again. */
export interface ReceivedAnswer extends LineAnswer {
  readonly retryAfterMs: number | undefined;
}

/** One request of a batch, treated as an HTTP request. Its answer is kept. */
export class BatchExchange implements HttpExchange {
  readonly method = "POST";
  readonly path: string;
  readonly parsedBody: unknown;
  readonly departure: Departure = new Departure();
  readonly ofBatch: LineOfBatch;
  readonly #headers: Readonly<Record<string, string>>;
  /** undefined until the answer is complete. */
  answer: ReceivedAnswer | undefined;

  constructor(path: string, body: JsonObject, headers: Readonly<Record<string, string>>, ofBatch: LineOfBatch) {
    this.path = path;
    this.parsedBody = body;
    this.#headers = headers;
    this.ofBatch = ofBatch;
  }

  query(): undefined {}

  queryNames(): readonly string[] {
    return [];
  }

  queries(): readonly string[] {
    return [];
  }

  header(name: string): string | undefined {
    return this.#headers[name];
  }

  headers(): readonly (readonly [name: string, value: string])[] {
    return Object.entries(this.#headers);
  }

  async readBody(): Promise<Uint8Array> {
    return new TextEncoder().encode(JSON.stringify(this.parsedBody));
  }

  send(status: number, headers: HeaderFields, body: string): void {
    const retryAfter = Number(headers["retry-after"]);
    this.answer = {
      status,
      requestId: headers["x-request-id"] ?? headers["request-id"] ?? "",
      // A line end in JSON is never part of a string.
      body: body.replace(/\n */g, ""),
      retryAfterMs: Number.isNaN(retryAfter) ? undefined : retryAfter * 1000,
    };
  }

  /** Requests of batches do not stream; see `refusalOf`. */
  open(): void {
    this.cut();
  }

  write(): undefined {}

  end(): void {}

  cut(): void {
    this.departure.happen();
  }
}
