import type { RequestSummary } from "../../inspect/inspected-request.ts";
import type { WatchedRequest } from "./watched-request.ts";

/** Changes that come within this time are told together, in milliseconds. */
const pauseMs = 100;

/** What has changed since it was told last, each request once. */
export class Changes implements AsyncIterableIterator<readonly RequestSummary[]> {
  readonly #left: () => void;
  #changed = new Set<WatchedRequest>();
  #wake: (() => void) | undefined;
  #isLeft = false;

  /** `left`: called when nobody listens any more. */
  constructor(left: () => void) {
    this.#left = left;
  }

  add(request: WatchedRequest): void {
    this.#changed.add(request);
    this.#wake?.();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<readonly RequestSummary[], undefined>> {
    while (this.#changed.size === 0 && !this.#isLeft) await new Promise<void>((resolve) => (this.#wake = resolve));
    if (!this.#isLeft) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    if (this.#isLeft) return { done: true, value: undefined };
    const changed = [...this.#changed];
    this.#changed = new Set();
    return { done: false, value: changed.map((request) => request.summary()) };
  }

  async return(): Promise<IteratorResult<readonly RequestSummary[], undefined>> {
    this.#isLeft = true;
    this.#left();
    this.#wake?.();
    return { done: true, value: undefined };
  }
}
