import { eventStreamOf, eventStreamType } from "../../wire/apis/messages/event-stream.ts";
import type { AnswerSink, Departure, HeaderFields, HttpExchange } from "./exchange.ts";

/** Sends a stream of the Messages API as an AWS event stream, to clients of Bedrock. Other answers stay as they are. */
export class EventStreamSink implements AnswerSink {
  readonly #exchange: HttpExchange;

  constructor(exchange: HttpExchange) {
    this.#exchange = exchange;
  }

  get departure(): Departure {
    return this.#exchange.departure;
  }

  send(status: number, headers: HeaderFields, body: string): void {
    this.#exchange.send(status, headers, body);
  }

  open(status: number, headers: HeaderFields): void {
    const own = { "content-type": eventStreamType, "x-amzn-bedrock-content-type": "application/json" };
    this.#exchange.open(status, { ...headers, ...own });
  }

  write(text: string): Promise<void> | undefined {
    const bytes = eventStreamOf(text);
    return bytes.length === 0 ? undefined : this.#exchange.bytes?.write(bytes);
  }

  end(text: string): void {
    void this.write(text);
    this.#exchange.end("");
  }

  cut(): void {
    this.#exchange.cut();
  }
}
