import type { DetachedRun } from "../../wire/apis/port-state.ts";
import { FailureError } from "../../wire/core/failure.ts";
import type { HeaderFields } from "./exchange.ts";

/** A run of this process, and what has been written of it. */
export interface FoundRun extends DetachedRun {
  readonly state: RunState;
  /** Begins with chunk `from`; default 0. `return` ends the iteration immediately. */
  events(from?: number): AsyncIterableIterator<string>;
}

export interface RunState {
  /** The number of the first chunk that is kept, and of the next one that will be written. */
  readonly first: number;
  readonly next: number;
  readonly hasEnded: boolean;
  /** The headers of a resumable stream, in which each chunk is one event; absent for a response in the background. */
  readonly headers?: HeaderFields;
}

/** The length of text that one step of a reader returns, unless a single chunk is longer. In characters. */
const maxReadLength = 64 * 1024;
/** The writer is at most this far ahead of a reader, with a limit. In characters. */
const maxAhead = 256 * 1024;
/** The approximate memory of a chunk in addition to its characters, in characters. */
const perChunk = 40;

/**
 * What an answer has written, in chunks with the numbers 0, 1, 2, … Several readers read it, each from a chunk of its choice and at its own
 * pace.
 *
 * With a limit, chunks that were read are dropped beyond it while there is a reader, the oldest first. The writer waits (`drain`) for a
 * reader that has much left to read, and without a reader when as much as the limit is unread. What counts is the newest reader: the
 * connection of an older one may be lost without a sign.
 */
export class WrittenText {
  readonly #limit: number;
  readonly #chunks: string[] = [];
  /** The number of the first chunk that is kept. */
  #first = 0;
  #size = 0;
  /** The size of the chunks from `#taken` on, which the newest reader has not read. */
  #unread = 0;
  #taken = 0;
  #hasEnded = false;
  /** In the order in which they came. */
  readonly #readers = new Set<TextReader>();
  #newest: TextReader | undefined;
  #waiting: (() => void)[] = [];
  /** Called when a reader comes or leaves. */
  onReaders: (() => void) | undefined;

  /** `limit`: in characters. */
  constructor(limit: number = Number.POSITIVE_INFINITY) {
    this.#limit = limit;
  }

  get state(): RunState {
    return { first: this.#first, next: this.next, hasEnded: this.#hasEnded };
  }

  /** The number of the next chunk that will be written. */
  get next(): number {
    return this.#first + this.#chunks.length;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0;
  }

  /** The approximate memory of what is kept, in characters. */
  get size(): number {
    return this.#size;
  }

  /** Everything that is kept. */
  whole(): string {
    return this.#chunks.join("");
  }

  add(chunk: string): void {
    if (chunk === "" || this.#hasEnded) return;
    this.#chunks.push(chunk);
    this.#size += chunk.length + perChunk;
    this.#unread += chunk.length + perChunk;
    // In bulk, because dropping from the front moves the rest. What was sent over a lost connection may not have been received.
    if (this.#size > this.#limit && this.hasReaders) this.dropRead(this.#limit * 0.75);
    this.#wakeReaders();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wakeReaders();
    this.#wakeWriter();
  }

  dismissReaders(): void {
    for (const reader of this.#readers) void reader.return();
  }

  /** Ends the text and drops all of it. */
  clear(): void {
    this.#first = this.#taken = this.next;
    this.#chunks.length = this.#size = this.#unread = 0;
    this.end();
  }

  /** Drops chunks that were read, the oldest first, until `size` is at most `target`. */
  dropRead(target: number): void {
    let count = 0;
    for (; this.#size > target && this.#first + count < this.#taken; count++) this.#size -= this.#sizeOf(count);
    this.#chunks.splice(0, count);
    this.#first += count;
  }

  /** A promise that resolves when the writer may continue; undefined: it may continue now. */
  drain(): Promise<void> | undefined {
    if (this.#hasEnded || !this.#isFull) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /**
   * Reads from chunk `from` on: each step returns what has been written since, as soon as there is any. Rejects with `FailureError` 410 if
   * that is no longer kept. `return` ends it immediately, also while a step waits.
   */
  events(from = 0): AsyncIterableIterator<string> {
    const reader = new TextReader(this, from, () => this.#leave(reader));
    this.#readers.add(reader);
    this.#newest = reader;
    this.#setTaken(from);
    this.onReaders?.();
    return reader;
  }

  /** Returns text from chunk `from` on, and the number of the next chunk to read. */
  read(from: number, reader: TextReader): { readonly text: string; readonly next: number } {
    if (from < this.#first) throw notKept(this.#first);
    let text = "";
    let next = from;
    for (; next < this.next && text.length < maxReadLength; next++) text += this.#chunks[next - this.#first] ?? "";
    if (reader === this.#newest) this.#setTaken(next);
    return { text, next };
  }

  #leave(reader: TextReader): void {
    if (!this.#readers.delete(reader)) return;
    if (reader === this.#newest) {
      this.#newest = [...this.#readers].at(-1);
      if (this.#newest) this.#setTaken(this.#newest.position);
      else if (!this.#isFull) this.#wakeWriter();
    }
    this.onReaders?.();
  }

  #setTaken(number: number): void {
    const place = Math.min(number, this.next);
    for (; this.#taken < place; this.#taken++) this.#unread -= this.#sizeOf(this.#taken - this.#first);
    for (; this.#taken > place && this.#taken > this.#first; this.#taken--)
      this.#unread += this.#sizeOf(this.#taken - 1 - this.#first);
    if (!this.#isFull) this.#wakeWriter();
  }

  get #isFull(): boolean {
    return this.#unread > (this.hasReaders ? Math.min(maxAhead, this.#limit) : this.#limit);
  }

  #sizeOf(index: number): number {
    return (this.#chunks[index]?.length ?? 0) + perChunk;
  }

  #wakeReaders(): void {
    for (const reader of this.#readers) reader.wake();
  }

  #wakeWriter(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

class TextReader implements AsyncIterableIterator<string> {
  readonly #text: WrittenText;
  readonly #leave: () => void;
  /** The number of the next chunk to read. */
  position: number;
  #hasLeft = false;
  #wake: (() => void) | undefined;

  constructor(text: WrittenText, from: number, leave: () => void) {
    this.#text = text;
    this.position = from;
    this.#leave = leave;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<string, undefined>> {
    while (!this.#hasLeft && this.position >= this.#text.next && !this.#text.hasEnded)
      await new Promise<void>((resolve) => (this.#wake = resolve));
    if (this.#hasLeft || this.position >= this.#text.next) return this.return();
    const { text, next } = this.#text.read(this.position, this);
    this.position = next;
    return { done: false, value: text };
  }

  return(): Promise<IteratorResult<string, undefined>> {
    this.#hasLeft = true;
    this.wake();
    this.#leave();
    return Promise.resolve({ done: true, value: undefined });
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
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
