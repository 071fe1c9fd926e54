import type { Engine } from "../core/engine.ts";
import type { GenerationEvent } from "../core/events.ts";
import type { GenerationRequest } from "../core/request.ts";

/*
 * Attaches a request that is sent again to the generation of the first one. A client that waits 300 s for the first token of a long
 * prompt, leaves and sends the same body again would otherwise make the source process the prompt from its start, again and again.
 */

type Generator = Pick<Engine, "generate">;
type Batch = readonly GenerationEvent[];

/** The events of a generation that are kept for readers that are attached later, in estimated bytes. */
const defaultBufferLimit = 4 * 1024 * 1024;

export interface ResendOptions {
  /** Identifies the client and the bytes of its request. */
  readonly key: string;
  readonly requestId: string;
  /** The client says that it has sent the request before. */
  readonly isRetry: boolean;
  /** How long a generation whose clients have left waits for one that sends the request again, in milliseconds. */
  readonly waitMs: number;
  /** Called with the id of the first request if this one is attached to it. */
  readonly onAttached: (requestId: string) => void;
  /** Called with the name of each fallback that is asked, and of the last one that was asked before. */
  readonly onFallback: (name: string) => void;
}

/** Makes the engine of a generation, which calls `onFallback` with the names of the fallbacks that it asks. */
export type OpenGenerator = (onFallback: (name: string) => void) => Generator;

/** The generations that may be attached to. */
export class Resends {
  readonly #running = new Map<string, SharedGeneration>();
  #isClosing = false;
  readonly #bufferLimit: number;

  constructor(bufferLimit: number = defaultBufferLimit) {
    this.#bufferLimit = bufferLimit;
  }

  /** The number of generations that may be attached to. */
  get size(): number {
    return this.#running.size;
  }

  /** The server closes: generations whose clients have left do not wait for further ones. */
  close(): void {
    this.#isClosing = true;
    for (const shared of this.#running.values()) shared.cancelAbandoned();
  }

  /**
   * Returns an engine that generates with the one that `open` returns, or that repeats the generation of an identical request from its
   * beginning.
   */
  share(open: OpenGenerator, options: ResendOptions): Generator {
    return {
      generate: (request, observer) => {
        const { key, requestId, isRetry, waitMs, onAttached, onFallback } = options;
        const running = this.#running.get(key);
        if (running && (running.isAbandoned || isRetry || isRepeatable(request))) {
          onAttached(running.requestId);
          return running.attach(onFallback);
        }
        const close = (): void => {
          if (this.#running.get(key) === shared) this.#running.delete(key);
        };
        const start: SharedOptions["start"] = (noteFallback) =>
          open(noteFallback).generate(request, observer)[Symbol.asyncIterator]();
        const mayWait = (): boolean => !this.#isClosing;
        const shared = new SharedGeneration(requestId, {
          start,
          mayWait,
          waitMs,
          bufferLimit: this.#bufferLimit,
          close,
        });
        this.#running.set(key, shared);
        return shared.attach(onFallback);
      },
    };
  }
}

/** Whether a second answer would be the same as the first: a client that samples several answers in parallel must get different ones. */
function isRepeatable({ sampling: { temperature, seed } }: GenerationRequest): boolean {
  return temperature === 0 || seed !== undefined;
}

interface SharedOptions {
  /** Starts the generation. */
  readonly start: (onFallback: (name: string) => void) => AsyncIterator<Batch>;
  /** Whether it may wait for a client that sends the request again. */
  readonly mayWait: () => boolean;
  readonly waitMs: number;
  readonly bufferLimit: number;
  /** No further reader may be attached. */
  readonly close: () => void;
}

/** One generation with several readers. The fastest one pulls, as far ahead of the slowest as the buffer's limit. */
class SharedGeneration {
  readonly requestId: string;
  readonly #source: AsyncIterator<Batch>;
  readonly #options: SharedOptions;
  readonly #readers = new Set<Reader>();
  /** The batches from number `#first`, which is 0 until the buffer is full. */
  #batches: { readonly batch: Batch; readonly size: number }[] = [];
  #first = 0;
  #size = 0;
  #isFull = false;
  /** Further readers may be attached. */
  #isOpen = true;
  #isOver = false;
  #error: { readonly cause: unknown } | undefined;
  #pull: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The fallback that was asked last. */
  #fallback: string | undefined;

  constructor(requestId: string, options: SharedOptions) {
    this.requestId = requestId;
    this.#options = options;
    this.#source = options.start((name) => {
      this.#fallback = name;
      for (const reader of this.#readers) reader.onFallback(name);
    });
  }

  /** Whether all readers have left. */
  get isAbandoned(): boolean {
    return this.#readers.size === 0;
  }

  attach(onFallback: (name: string) => void): AsyncIterableIterator<Batch> {
    clearTimeout(this.#timer);
    if (this.#fallback !== undefined) onFallback(this.#fallback);
    const reader = new Reader(this, onFallback);
    this.#readers.add(reader);
    return reader;
  }

  /** The batch with a number; undefined after the last one. Throws what the source threw. */
  async batch(number: number, reader: Reader): Promise<Batch | undefined> {
    for (;;) {
      const found = this.#batches[number - this.#first];
      if (found) {
        // An answer that is complete can be attached to until a client has received it.
        if (found.batch.at(-1)?.type === "end") this.#close();
        return found.batch;
      }
      if (this.#error) throw this.#error.cause;
      if (this.#isOver || !this.#readers.has(reader)) return undefined;
      // A reader that is too far ahead waits until the slowest one has read on.
      if (this.#size > this.#options.bufferLimit && this.#first < number) await reader.wait();
      else {
        this.#pull ??= this.#pullOne();
        await Promise.race([this.#pull, reader.wait()]);
      }
    }
  }

  /** A reader has read on. */
  advanced(): void {
    if (!this.#isFull) return;
    const slowest = Math.min(...[...this.#readers].map(({ position }) => position));
    while (this.#first < slowest && this.#batches.length > 0) {
      this.#size -= this.#batches.shift()?.size ?? 0;
      this.#first++;
    }
    for (const reader of this.#readers) reader.wake();
  }

  leave(reader: Reader): void {
    if (!this.#readers.delete(reader)) return;
    reader.wake();
    if (this.#readers.size > 0) return this.advanced();
    if (!this.#isOpen || !this.#options.mayWait()) return this.#cancel();
    this.#timer = setTimeout(() => this.#cancel(), this.#options.waitMs);
    this.#timer.unref?.();
  }

  cancelAbandoned(): void {
    if (!this.isAbandoned) return;
    clearTimeout(this.#timer);
    this.#cancel();
  }

  async #pullOne(): Promise<void> {
    try {
      const step = await this.#source.next();
      if (step.done === true) this.#isOver = true;
      else this.#add(step.value);
    } catch (cause) {
      this.#error = { cause };
      this.#close();
    }
    this.#pull = undefined;
  }

  #add(batch: Batch): void {
    const size = sizeOf(batch);
    this.#batches.push({ batch, size });
    this.#size += size;
    if (this.#isFull || this.#size <= this.#options.bufferLimit) return;
    this.#isFull = true;
    this.#close();
    this.advanced();
  }

  #close(): void {
    this.#isOpen = false;
    this.#options.close();
  }

  #cancel(): void {
    this.#isOver = true;
    this.#close();
    this.#batches = [];
    this.#source.return?.()?.catch(() => {});
  }
}

class Reader implements AsyncIterableIterator<Batch> {
  readonly #shared: SharedGeneration;
  readonly onFallback: (name: string) => void;
  #hasLeft = false;
  #wake: (() => void) | undefined;
  /** The number of the next batch. */
  position = 0;

  constructor(shared: SharedGeneration, onFallback: (name: string) => void) {
    this.#shared = shared;
    this.onFallback = onFallback;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Batch, undefined>> {
    const batch = this.#hasLeft ? undefined : await this.#shared.batch(this.position, this);
    if (batch === undefined || this.#hasLeft) {
      this.#leave();
      return { done: true, value: undefined };
    }
    this.position++;
    this.#shared.advanced();
    return { done: false, value: batch };
  }

  return(): Promise<IteratorResult<Batch, undefined>> {
    this.#leave();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Resolves with the next call of `wake`. */
  wait(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  #leave(): void {
    this.#hasLeft = true;
    this.#shared.leave(this);
  }
}

/** An estimate, in bytes. */
function sizeOf(batch: Batch): number {
  let size = 0;
  for (const event of batch) {
    size += 200;
    if ("text" in event && typeof event.text === "string") size += 2 * event.text.length;
    else if (event.type === "tool-call-delta") size += 2 * event.arguments.length;
    else if (event.type === "extra" || event.type === "tokens" || event.type === "prompt")
      size += 2 * JSON.stringify(event).length;
  }
  return size;
}
