import type { GenerationIterator } from "./engine.ts";
import { type GenerationEvent, isVisible } from "./events.ts";

type Batch = readonly GenerationEvent[];

export interface RelayOptions {
  /**
   * Called with each batch after the one that `open` returned. Returns the events to pass on in its place; none: they are held back. It may
   * ask another source while `isUnseen`.
   */
  readonly read?: (batch: Batch, relay: Relay) => Batch | Promise<Batch>;
  /** Called once, when the generation has ended or the client has left, and the source has returned. */
  readonly onEnd?: () => void;
}

/**
 * One generation whose source may be replaced before the first visible event: by another model, by another request to the same one, or by a
 * second answer when the first is not acceptable.
 *
 * `open` asks the first source, and others in its place, by `ask`. It returns the first batch to pass on, and the source that was asked last
 * continues it. When the client leaves, the source is left, a waiting `next` resolves as done, and what `open` or `read` still do is ignored.
 */
export class Relay implements GenerationIterator, AsyncIterableIterator<Batch, undefined> {
  #open: ((relay: Relay) => Promise<Batch>) | undefined;
  readonly #read: RelayOptions["read"];
  readonly #onEnd: (() => void) | undefined;
  #source: GenerationIterator | undefined;
  /** What `read` makes of the last batch that was followed. */
  #reading: Promise<Batch> | undefined;
  #isUnsent = true;
  #isUnseen = true;
  #isOver = false;
  /** What is passed on last, if the generation was ended. */
  #last: Batch | undefined;
  #controller: AbortController | undefined;
  /** Ends the wait for `open` or `read`. */
  #leave: (() => void) | undefined;

  constructor(open: (relay: Relay) => Promise<Batch>, { read, onEnd }: RelayOptions = {}) {
    this.#open = open;
    this.#read = read;
    this.#onEnd = onEnd;
  }

  /** Nothing was passed on, so no headers were sent. */
  get isUnsent(): boolean {
    return this.#isUnsent;
  }

  /** No visible event was passed on, so the source may be replaced. */
  get isUnseen(): boolean {
    return this.#isUnseen;
  }

  /** The generation has ended, or the client has left: no further source may be asked. */
  get hasEnded(): boolean {
    return this.#isOver;
  }

  /** Aborts when the client leaves, or the generation is ended. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isOver) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Leaves the current source and starts another one. Resolves with its first batch; empty: it has none, or the client has left. */
  readonly ask = async (start: () => AsyncIterable<Batch>): Promise<Batch> => {
    void this.#source?.return?.();
    if (this.#isOver) return [];
    this.#source = start()[Symbol.asyncIterator]();
    const step = await this.#source.next();
    return step.done === true ? [] : step.value;
  };

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Batch, undefined>> {
    try {
      while (!this.#isOver) {
        const read = this.#waiting();
        let batch: Batch | undefined;
        if (read) batch = await this.#unlessLeft(read);
        else {
          const step = await this.#source?.next();
          if (!step || step.done === true) break;
          batch = this.#take(step.value);
        }
        if (batch && batch.length > 0 && !this.#isOver) return { done: false, value: this.#passed(batch) };
      }
      const last = this.#last;
      this.#last = undefined;
      if (last) return { done: false, value: last };
    } catch (error) {
      await this.return();
      throw error;
    }
    return this.return();
  }

  /** See `GenerationIterator`. */
  follow(take: (batch: Batch) => boolean): Promise<void> | undefined {
    if (this.#open || this.#reading || this.#isOver) return undefined;
    return this.#source?.follow?.((received) => {
      const batch = this.#take(received);
      return batch !== undefined && (batch.length === 0 || take(this.#passed(batch)));
    });
  }

  /** Ends the generation: the waiting `next`, or the next one, gets `last`. */
  finish(last: Batch): void {
    if (this.#isOver) return;
    this.#last = last;
    void this.return();
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    if (this.#isOver) return over;
    this.#isOver = true;
    this.#controller?.abort();
    this.#leave?.();
    try {
      await this.#source?.return?.();
    } finally {
      this.#onEnd?.();
    }
    return over;
  }

  /** What must be waited for before the source is pulled again. */
  #waiting(): Promise<Batch> | undefined {
    const waiting = this.#open ? this.#open(this) : this.#reading;
    this.#open = this.#reading = undefined;
    return waiting;
  }

  /** Returns the events to pass on; undefined: `#reading` has them. */
  #take(batch: Batch): Batch | undefined {
    const read = this.#read ? this.#read(batch, this) : batch;
    if (!(read instanceof Promise)) return read;
    read.catch(() => {});
    this.#reading = read;
    return undefined;
  }

  #passed(batch: Batch): Batch {
    this.#isUnsent = false;
    if (this.#isUnseen) this.#isUnseen = !batch.some(isVisible);
    return batch;
  }

  /** Resolves with the result, or to undefined as soon as the client has left. */
  #unlessLeft<T>(result: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      this.#leave = () => resolve(undefined);
      result.then(resolve, reject);
    });
  }
}

const over: IteratorReturnResult<undefined> = { done: true, value: undefined };
