/** The time that all runs together may take of a turn of the event loop, in milliseconds. */
const shareMs = 5;

/** Work in steps of at most a millisecond. Where a step yields a promise, the work waits for it. */
export type AsyncSteps<T> = Generator<Promise<void> | undefined, T, undefined>;

/**
 * Runs work in steps between the decodes of the model: all runs together take about 5 ms of each turn of the event loop, in the order in
 * which they started. Short runs of one turn are completed in it, because a turn may take as long as a decode. While one run waits for a
 * promise, the others continue.
 */
export class EventLoopShare {
  readonly #waiting: (() => void)[] = [];
  #hasTurn = false;
  /** A run is executing its steps. */
  #isTaken = false;
  #until = 0;

  /** Resolves with the result of `work`. Rejects with what a step throws; a promise's rejection is thrown into the work. */
  async run<T>(work: AsyncSteps<T>): Promise<T> {
    let failed: { readonly error: unknown } | undefined;
    for (;;) {
      await this.#share();
      let step: IteratorResult<Promise<void> | undefined, T>;
      try {
        do {
          step = failed ? work.throw(failed.error) : work.next();
          failed = undefined;
        } while (step.done !== true && step.value === undefined && performance.now() < this.#until);
      } finally {
        this.#isTaken = false;
        this.#startNext();
      }
      if (step.done === true) return step.value;
      await step.value?.catch((error: unknown) => (failed = { error }));
    }
  }

  #share(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#hasTurn) this.#startNext();
      else this.#startTurn();
    });
  }

  #startTurn(): void {
    this.#hasTurn = true;
    this.#until = performance.now() + shareMs;
    this.#startNext();
    setImmediate(() => {
      if (this.#waiting.length > 0) this.#startTurn();
      else this.#hasTurn = false;
    });
  }

  #startNext(): void {
    if (this.#isTaken || performance.now() >= this.#until) return;
    const next = this.#waiting.shift();
    if (!next) return;
    this.#isTaken = true;
    next();
  }
}

/** A lock that is acquired in the order of the calls. */
export class AsyncLock {
  #last: Promise<void> = Promise.resolve();

  /** `ready` resolves when the lock is acquired. `release` must be called in any case. */
  acquire(): { readonly ready: Promise<void>; readonly release: () => void } {
    const ready = this.#last;
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    this.#last = ready.then(() => released);
    return { ready, release };
  }
}
