import type { GenerationObserver } from "../../core/generation-observer.ts";
import type { GenerationEnd, GenerationEvent } from "../../core/events.ts";

/**
 * A request's events on their way from the model's process to their reader. What came since the reader last asked is one batch. The
 * model is told how much was taken, and pauses the request's sequences when they are too far ahead: so this never holds much.
 */
export class Delivery {
  readonly #onTaken: (tokens: number) => void;
  #events: GenerationEvent[] = [];
  #tokens = 0;
  #untold = 0;
  #ended = false;
  #waiting: ((batch: GenerationEvent[] | null) => void) | undefined;

  /** Hears what no event tells of the request. */
  readonly observer: GenerationObserver | undefined;

  /** `onTaken` is called now and then with the number of tokens that the reader has taken since. */
  constructor(onTaken: (tokens: number) => void, observer?: GenerationObserver) {
    this.#onTaken = onTaken;
    this.observer = observer;
  }

  /** The last event was delivered or is waiting to be. */
  get ended(): boolean {
    return this.#ended;
  }

  push(events: readonly GenerationEvent[], tokens: number): void {
    if (this.#ended) return;
    this.#tokens += tokens;
    if (this.#events.length === 0) this.#events = events.slice();
    else this.#events.push(...events);
    this.#ended = events.at(-1)?.type === "end";
    if (this.#waiting && this.#events.length > 0) {
      this.#waiting(this.#take());
      this.#waiting = undefined;
    } else if (this.#events.length === 0) this.#tell();
  }

  end(end: GenerationEnd): void {
    this.push([{ type: "end", end }], 0);
  }

  /** The next batch, never empty; null after the last. One reader at a time. */
  next(): Promise<GenerationEvent[] | null> | GenerationEvent[] | null {
    if (this.#events.length > 0) return this.#take();
    if (this.#ended) return null;
    return new Promise((resolve) => (this.#waiting = resolve));
  }

  #take(): GenerationEvent[] {
    const events = this.#events;
    this.#events = [];
    this.#tell();
    return events;
  }

  #tell(): void {
    this.#untold += this.#tokens;
    this.#tokens = 0;
    if (this.#untold < 16 || this.#ended) return;
    this.#onTaken(this.#untold);
    this.#untold = 0;
  }
}
