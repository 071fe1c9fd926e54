import type { GenerationEnd, GenerationEvent } from "../../wire/core/events.ts";
import type { GenerationObserver } from "../../wire/core/generation-observer.ts";

/**
 * Delivers a request's events from the model's process to its reader. All events since the last batch are one batch. The process is sent
 * the number of tokens that were taken, and pauses sequences that are too far ahead, so this buffer stays small.
 */
export class Delivery {
  readonly observer: GenerationObserver | undefined;
  readonly #onTaken: (tokens: number) => void;
  #events: GenerationEvent[] = [];
  /** Tokens of the buffered events, and tokens that were taken and not reported yet. */
  #tokens = 0;
  #unreported = 0;
  #ended = false;
  #waiting: ((batch: GenerationEvent[] | null) => void) | undefined;

  /** `onTaken` is called, after 16 tokens or more, with the number of tokens that the reader has taken. */
  constructor(onTaken: (tokens: number) => void, observer?: GenerationObserver) {
    this.#onTaken = onTaken;
    this.observer = observer;
  }

  /** The last event was delivered or is in the buffer. */
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
    } else if (this.#events.length === 0) this.#reportTaken();
  }

  end(end: GenerationEnd): void {
    this.push([{ type: "end", end }], 0);
  }

  /** Returns the next batch, which is not empty, or null after the last one. Only one reader may wait. */
  next(): Promise<GenerationEvent[] | null> | GenerationEvent[] | null {
    if (this.#events.length > 0) return this.#take();
    if (this.#ended) return null;
    return new Promise((resolve) => (this.#waiting = resolve));
  }

  #take(): GenerationEvent[] {
    const events = this.#events;
    this.#events = [];
    this.#reportTaken();
    return events;
  }

  #reportTaken(): void {
    this.#unreported += this.#tokens;
    this.#tokens = 0;
    if (this.#unreported < 16 || this.#ended) return;
    this.#onTaken(this.#unreported);
    this.#unreported = 0;
  }
}
