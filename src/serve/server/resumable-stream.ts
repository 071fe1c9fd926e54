import { invalidRequest } from "../../wire/core/failure.ts";
import { Departure, resumeHeader } from "./exchange.ts";
import type { AnswerSink, HeaderFields, HttpExchange } from "./exchange.ts";
import type { RequestRecord } from "./request-record.ts";
import { WrittenText } from "./written-text.ts";
import type { FoundRun, RunState } from "./written-text.ts";

/** What a stream keeps for a client that resumes it, in characters. */
const maxLength = 4 * 1024 * 1024;

/**
 * Returns how long the client asks its stream to continue without it, in milliseconds; 0: not at all. Throws `FailureError` 400 for a value
 * that is not a time.
 */
export function resumeTimeOf(exchange: Pick<HttpExchange, "header">): number {
  const value = exchange.header(resumeHeader);
  if (value === undefined) return 0;
  const [, number, unit = "s"] = /^\s*(\d{1,9})\s*(ms|s|m|h)?\s*$/.exec(value) ?? [];
  if (number === undefined) {
    throw invalidRequest(
      `Invalid header '${resumeHeader}': expected a time such as 30s or 2m, for which the answer continues without a connection, but got '${value.slice(0, 100)}'.`,
      null,
      "invalid_value",
    );
  }
  return Number(number) * (unitMs[unit] ?? 0);
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

export interface ResumableOptions {
  /** Opens the stream, and is its first reader. */
  readonly exchange: HttpExchange;
  readonly record: RequestRecord;
  /** Of the stream, for further readers. */
  readonly headers: HeaderFields;
  /** How long the generation continues without a reader, and the stream is kept after its end, in milliseconds. */
  readonly resumeMs: number;
  /** Sends events to the exchange, after its headers, until it is closed. */
  readonly deliver: (events: AsyncIterable<string>) => Promise<void>;
  /** Called when the headers have been sent. */
  readonly begun: (stream: ResumableStream) => void;
}

/**
 * A streamed answer that continues for some time when its connection is lost. The server writes to it as to a connection; each event gets
 * the `id` of its number, and what was written is kept for readers. Once the stream has begun, the client counts as having left when no
 * reader came back in time. Source of `id` and `Last-Event-ID`: WHATWG HTML, "Server-sent events".
 */
export class ResumableStream implements AnswerSink, FoundRun {
  readonly departure: Departure = new Departure();
  /** Resolves when the first reader has received everything, or has left. */
  delivered: Promise<void> = Promise.resolve();
  /** Called when anything has changed. */
  onChange: () => void = () => {};
  readonly #options: ResumableOptions;
  readonly #text = new WrittenText(maxLength);
  #isOpen = false;
  #isForgotten = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: ResumableOptions) {
    this.#options = options;
    const { signal } = options.exchange.departure;
    const left = (): void => {
      if (!this.#isOpen) this.departure.happen();
    };
    if (signal.aborted) left();
    else signal.addEventListener("abort", left, { once: true });
    this.#text.onReaders = () => this.#readersChanged();
  }

  get state(): RunState {
    return { ...this.#text.state, headers: this.#options.headers };
  }

  /** In characters. */
  get size(): number {
    return this.#text.size;
  }

  /** It is being generated, and has no reader. */
  get isLost(): boolean {
    return this.#isOpen && !this.#text.hasEnded && !this.#text.hasReaders;
  }

  get hasEnded(): boolean {
    return this.#text.hasEnded;
  }

  get hasReaders(): boolean {
    return this.#text.hasReaders;
  }

  get isForgotten(): boolean {
    return this.#isForgotten;
  }

  send(status: number, headers: HeaderFields, body: string): void {
    this.#options.exchange.send(status, headers, body);
  }

  open(status: number, headers: HeaderFields): void {
    const { exchange, deliver, begun } = this.#options;
    this.#isOpen = true;
    exchange.open(status, headers);
    begun(this);
    this.delivered = deliver(this.#text.events()).catch(() => exchange.cut());
  }

  /** Adds the ids. Comments are left out, because each reader gets comments of its own. */
  format(text: string): string {
    if (text.startsWith(":")) return "";
    let number = this.#text.next;
    return eventsIn(text)
      .map((event) => `id: ${number++}\n${event}`)
      .join("");
  }

  write(text: string): Promise<void> | undefined {
    for (const event of eventsIn(text)) this.#text.add(event);
    this.onChange();
    return this.#text.drain();
  }

  end(text: string): void {
    void this.write(text);
    this.#text.end();
    this.onChange();
    this.#forgetLater();
  }

  /** The reader is too slow. It may come back: until then, the answer continues without a reader. */
  cut(): void {
    if (this.#text.hasReaders) this.#text.dismissReaders();
    else this.stop();
    this.#options.exchange.cut();
  }

  events(from?: number): AsyncIterableIterator<string> {
    this.#options.record.resumes++;
    return this.#text.events(from);
  }

  /** Drops what was read. */
  dropRead(): void {
    this.#text.dropRead(0);
  }

  cancel(): Promise<void> {
    this.stop();
    return Promise.resolve();
  }

  /** Ends the generation and drops everything. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#isForgotten = true;
    if (!this.#text.hasEnded) this.departure.happen();
    this.#text.clear();
    this.onChange();
  }

  #readersChanged(): void {
    clearTimeout(this.#timer);
    if (this.#text.hasReaders) return;
    if (!this.#text.hasEnded) this.#options.record.lost++;
    this.#forgetLater();
    this.onChange();
  }

  /** Without a reader, the generation ends after the time that the client asked for; an answer that has ended is dropped after it. */
  #forgetLater(): void {
    if (this.#isForgotten || this.#text.hasReaders) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.stop(), this.#options.resumeMs);
    this.#timer.unref?.();
  }
}

/** The events of a chunk, each with its blank line. */
function eventsIn(text: string): string[] {
  return text.split(/(?<=\n\n)/).filter((event) => event !== "");
}
