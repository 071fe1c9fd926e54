/**
 * Makes an iteration that is cancelled by returning from it, from one that takes a signal. `return` aborts the signal, and a pending
 * `next` resolves as done immediately. Later results and errors of the source are ignored.
 *
 * The `return` of a generator does not do this: it waits until the generator's current `await` has settled.
 *
 * @example
 * import { cancellable } from "truewire";
 *
 * const ticks = cancellable(async function* (signal) {
 *   for (let tick = 0; !signal.aborted; tick++) yield tick;
 * });
 * for await (const tick of ticks) {
 *   if (tick === 2) break;
 *   console.log(tick);
 * }
 * // → 0
 * // → 1
 */
export function cancellable<T>(start: (signal: AbortSignal) => AsyncIterable<T>): AsyncIterableIterator<T, undefined> {
  return new Cancellable(start);
}

class Cancellable<T> implements AsyncIterableIterator<T, undefined> {
  readonly #controller = new AbortController();
  readonly #source: AsyncIterator<T>;
  /** Resolves a pending `next` as done. */
  #leave: (() => void) | undefined;
  #over = false;

  constructor(start: (signal: AbortSignal) => AsyncIterable<T>) {
    this.#source = start(this.#controller.signal)[Symbol.asyncIterator]();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#over) return Promise.resolve(done);
    return new Promise((resolve, reject) => {
      this.#leave = () => resolve(done);
      this.#source.next().then(
        (step) => {
          if (step.done === true) this.#over = true;
          resolve(step.done === true ? done : step);
        },
        (error: unknown) => {
          this.#over = true;
          reject(error);
        },
      );
    });
  }

  return(): Promise<IteratorResult<T, undefined>> {
    if (!this.#over) {
      this.#over = true;
      this.#controller.abort();
      this.#leave?.();
      // Runs the source's `finally` blocks when its current `await` has settled.
      this.#source.return?.()?.catch(() => {});
    }
    return Promise.resolve(done);
  }
}

const done: IteratorReturnResult<undefined> = { done: true, value: undefined };
