import type { GenerationEnd, GenerationEvent } from "../core/events.ts";
import type { GenerationObserver } from "../core/generation-observer.ts";
import { mostAhead } from "./engine-messages.ts";

type Batch = readonly GenerationEvent[];

const done: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** What a generation has its engine's process do. */
export interface Remote {
  begin(): void;
  taken(batches: number): void;
  leave(): void;
  /** Once: nothing more comes, or nobody waits for it. */
  over(): void;
}

/** A generation in another process, as its reader sees it: what came since the reader last asked is one batch. */
export class RemoteGeneration implements AsyncIterableIterator<Batch, undefined> {
  /** Hears what no event tells. */
  readonly observer: GenerationObserver | undefined;
  readonly #remote: Remote;
  #state: "new" | "running" | "ended" | "left" = "new";
  #held: Batch = [];
  #heldBatches = 0;
  /** Batches that were taken, of which the other side does not know yet. */
  #untold = 0;
  #waiting: ((step: IteratorResult<Batch, undefined>) => void) | undefined;

  constructor(remote: Remote, observer?: GenerationObserver) {
    this.#remote = remote;
    this.observer = observer;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** One reader at a time. */
  next(): Promise<IteratorResult<Batch, undefined>> {
    if (this.#state === "new") {
      this.#state = "running";
      this.#remote.begin();
    }
    if (this.#held.length > 0) return Promise.resolve(this.#take());
    if (this.#state !== "running") return Promise.resolve(done);
    return new Promise((resolve) => (this.#waiting = resolve));
  }

  /** Cancels the work. */
  return(): Promise<IteratorResult<Batch, undefined>> {
    const isRunning = this.#state === "running";
    this.#state = "left";
    this.#held = [];
    if (isRunning) {
      this.#remote.leave();
      this.#remote.over();
    }
    this.#waiting?.(done);
    this.#waiting = undefined;
    return Promise.resolve(done);
  }

  /** What came from the engine; null: it is over without a further event. */
  receive(batch: Batch | null): void {
    if (this.#state !== "running") return;
    if (batch !== null) {
      this.#held = this.#held.length === 0 ? batch : [...this.#held, ...batch];
      this.#heldBatches++;
    }
    if (batch === null || batch.at(-1)?.type === "end") {
      this.#state = "ended";
      this.#remote.over();
    }
    if (!this.#waiting) return;
    this.#waiting(this.#held.length > 0 ? this.#take() : done);
    this.#waiting = undefined;
  }

  /** Ends it from this side: its reader gets this end, and the work is cancelled. */
  end(end: GenerationEnd): void {
    if (this.#state === "running") this.#remote.leave();
    this.receive([{ type: "end", end }]);
  }

  #take(): IteratorResult<Batch, undefined> {
    const value = this.#held;
    this.#held = [];
    this.#untold += this.#heldBatches;
    this.#heldBatches = 0;
    // Half of what may be under way: the engine need not wait for the news.
    if (this.#untold >= mostAhead / 2 && this.#state === "running") {
      this.#remote.taken(this.#untold);
      this.#untold = 0;
    }
    return { done: false, value };
  }
}
