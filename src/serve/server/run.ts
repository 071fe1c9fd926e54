import type { DetachedRun } from "../../wire/apis/port-state.ts";
import { cancellable } from "../../wire/core/cancellable.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { Departure } from "./exchange.ts";
import type { HeaderFields } from "./exchange.ts";

/** The length of text that one step of a reader returns, unless a single event is longer. In characters. */
const maxReadLength = 64 * 1024;
/** The writer is at most this far ahead of a reader. In characters. */
const maxAhead = 256 * 1024;
/** What a stream keeps for a client that resumes it, in characters. */
const maxKept = 4 * 1024 * 1024;
/** The approximate memory of an event in addition to its characters, in characters. */
const perEvent = 40;

/** What distinguishes a stream that a client may resume from a response in the background. */
export interface ResumableOptions {
  /** Of the stream. */
  readonly headers: HeaderFields;
  /** How long the generation continues without a reader, and its events are kept after its end, in milliseconds. */
  readonly aloneMs: number;
  /** How much is kept of the events, in characters; default: 4 Mi. */
  readonly limit?: number;
}

/**
 * An answer that is generated without a connection: its events with the numbers 0, 1, 2, …, in a bounded log. Any number of readers read
 * them, each from an event of its choice and at its own pace.
 *
 * A response in the background continues without readers, and keeps all of its events for the store. Of a stream that a client may resume,
 * events that were read are dropped beyond the limit while there is a reader, the oldest first. The writer waits (`drain`)
 * for a reader that has much left to read, and without a reader when as much as the limit is unread. What counts is the newest reader: the
 * connection of an older one may be lost without a sign. When no reader came back in time, the client counts as having left.
 */
export class Run implements DetachedRun {
  /** Whether the generation must stop. */
  readonly departure: Departure = new Departure();
  /** Of a stream that a client may resume. */
  readonly headers: HeaderFields | undefined;
  /** Called when anything has changed. */
  onChange: () => void = () => {};
  /** Called when a reader comes, and when the last one has left before the end. */
  onReader: (what: "came" | "lost") => void = () => {};
  /** Resolves when nothing more is done for the answer. */
  done: Promise<void> = Promise.resolve();
  readonly #limit: number;
  readonly #aloneMs: number | undefined;
  /** Each with the size of all events up to its end. */
  readonly #events: { readonly text: string; readonly end: number }[] = [];
  /** The number of the first event that is kept, and the size of those before it. */
  #first = 0;
  #dropped = 0;
  #written = 0;
  /** The number of the next event for the newest reader, or for the one after it. */
  #taken = 0;
  #hasEnded = false;
  #isCancelled = false;
  #isForgotten = false;
  /** In the order in which they came. */
  readonly #readers = new Set<Reader>();
  #newest: Reader | undefined;
  /** Wake the writers that wait. */
  #waiting: (() => void)[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `resumable`: absent for a response in the background. */
  constructor(resumable?: ResumableOptions) {
    const { headers, aloneMs, limit = maxKept } = resumable ?? {};
    this.headers = headers;
    this.#aloneMs = aloneMs;
    this.#limit = resumable ? limit : Number.POSITIVE_INFINITY;
  }

  /** The number of the first event that is kept, and of the next one that will be written. */
  get first(): number {
    return this.#first;
  }

  get next(): number {
    return this.#first + this.#events.length;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** It was cancelled before its end. */
  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0;
  }

  /** It is being generated for a client that may come back, and has no reader. */
  get isLost(): boolean {
    return this.#aloneMs !== undefined && !this.#hasEnded && !this.hasReaders;
  }

  /** A client may resume it. */
  get isResumable(): boolean {
    return this.#aloneMs !== undefined;
  }

  /** Clients do not find it any more. */
  get isForgotten(): boolean {
    return this.#isForgotten;
  }

  /** The approximate memory of what is kept, in characters. */
  get size(): number {
    return this.#written - this.#dropped;
  }

  /** Everything that is kept. */
  text(): string {
    return this.#events.map(({ text }) => text).join("");
  }

  /** Adds the `id` of its number to each event that `write` will add next. */
  numbered(text: string): string {
    let { next } = this;
    return eventsIn(text)
      .map((event) => `id: ${next++}\n${event}`)
      .join("");
  }

  /** Adds events. Returns a promise that resolves when the writer may continue; undefined: it may continue now. */
  write(text: string): Promise<void> | undefined {
    if (text === "" || this.#hasEnded) return undefined;
    for (const event of eventsIn(text)) {
      this.#written += event.length + perEvent;
      this.#events.push({ text: event, end: this.#written });
    }
    // In bulk, because dropping from the front moves the rest. What was sent over a lost connection may not have been received.
    if (this.size > this.#limit && this.hasReaders) this.#dropRead(this.#limit * 0.75);
    this.#wake();
    return this.#isFull ? new Promise((resolve) => this.#waiting.push(resolve)) : undefined;
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake();
    this.#forgetLater();
  }

  /**
   * Reads from event `from` on: each step returns what has been written since, as soon as there is any. Rejects with `FailureError` 410 if
   * that is no longer kept. `return` ends it immediately, also while a step waits.
   */
  events(from = 0): AsyncIterableIterator<string> {
    const reader: Reader = { next: from, wake() {} };
    this.#readers.add(reader);
    this.#newest = reader;
    this.#takenTo(from);
    clearTimeout(this.#timer);
    this.onReader("came");
    this.onChange();
    return cancellable((signal) => {
      signal.addEventListener("abort", () => this.#leave(reader));
      return this.#read(reader);
    });
  }

  /** Drops what was read. */
  dropRead(): void {
    this.#dropRead(0);
  }

  /** Ends all readers, which may come back. Returns false if there was no reader. */
  dismissReaders(): boolean {
    const { hasReaders } = this;
    for (const reader of this.#readers) this.#leave(reader);
    return hasReaders;
  }

  /** Stops the generation. Resolves when its end is stored. */
  async cancel(): Promise<void> {
    if (!this.#hasEnded) this.#isCancelled = true;
    this.stop();
    await this.done;
  }

  /** Stops the generation. Drops the events of a stream; those of a response in the background are for the store. */
  stop(): void {
    if (!this.#hasEnded) this.departure.happen();
    if (this.isResumable) this.forget();
  }

  /** Ends the events: clients do not find them any more, and those of a stream are dropped. */
  forget(): void {
    clearTimeout(this.#timer);
    this.#isForgotten = true;
    if (this.isResumable) {
      this.#first = this.#taken = this.next;
      this.#events.length = 0;
      this.#dropped = this.#written;
    }
    this.#hasEnded = true;
    this.#wake();
  }

  async *#read(reader: Reader): AsyncGenerator<string> {
    try {
      for (;;) {
        while (this.#readers.has(reader) && reader.next >= this.next && !this.#hasEnded)
          await new Promise<void>((resolve) => (reader.wake = resolve));
        if (reader.next >= this.next) return;
        yield this.#textFor(reader);
      }
    } finally {
      this.#leave(reader);
    }
  }

  #textFor(reader: Reader): string {
    if (reader.next < this.#first) throw notKept(this.#first);
    let text = "";
    for (; reader.next < this.next && text.length < maxReadLength; reader.next++)
      text += this.#events[reader.next - this.#first]?.text ?? "";
    if (reader === this.#newest) this.#takenTo(reader.next);
    return text;
  }

  #leave(reader: Reader): void {
    if (!this.#readers.delete(reader)) return;
    reader.wake();
    if (reader === this.#newest) this.#newest = [...this.#readers].at(-1);
    if (this.#newest) return this.#takenTo(this.#newest.next);
    if (!this.#isFull) this.#wakeWriter();
    if (!this.#hasEnded) this.onReader("lost");
    this.#forgetLater();
    this.onChange();
  }

  /** Without a reader, the generation ends after the time that the client asked for; an answer that has ended is dropped after it. */
  #forgetLater(): void {
    if (this.#aloneMs === undefined || this.#isForgotten || this.hasReaders) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.stop(), this.#aloneMs);
    this.#timer.unref?.();
  }

  #takenTo(number: number): void {
    this.#taken = Math.min(number, this.next);
    if (!this.#isFull) this.#wakeWriter();
  }

  /** Drops events that were read, the oldest first, until `size` is at most `target`. */
  #dropRead(target: number): void {
    let count = 0;
    while (this.#written - this.#sizeBefore(this.#first + count) > target && this.#first + count < this.#taken) count++;
    this.#dropped = this.#sizeBefore(this.#first + count);
    this.#events.splice(0, count);
    this.#first += count;
  }

  get #isFull(): boolean {
    if (this.#aloneMs === undefined || this.#hasEnded) return false;
    const unread = this.#written - this.#sizeBefore(Math.max(this.#taken, this.#first));
    return unread > (this.hasReaders ? Math.min(maxAhead, this.#limit) : this.#limit);
  }

  /** The size of all events before one. */
  #sizeBefore(number: number): number {
    return number <= this.#first ? this.#dropped : (this.#events[number - 1 - this.#first]?.end ?? this.#written);
  }

  /** The events have changed. */
  #wake(): void {
    for (const reader of this.#readers) reader.wake();
    if (!this.#isFull) this.#wakeWriter();
    this.onChange();
  }

  #wakeWriter(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

interface Reader {
  /** The number of the next event to read. */
  next: number;
  /** Ends its wait. */
  wake: () => void;
}

/** The events of a text, each with its blank line. */
function eventsIn(text: string): string[] {
  return text.split(/(?<=\n\n)/).filter((event) => event !== "");
}

/** The events before number `first` were dropped. */
export function notKept(first: number): FailureError {
  return new FailureError({
    kind: "not-found",
    message: `The next event is no longer kept: the stream has events from ${first} on. Send the request again.`,
    status: 410,
    param: null,
    code: "events_not_kept",
  });
}
