/** So long the works of all requests together may hold a round of the event loop, in milliseconds. */
const shareMs = 5;

/** The steps of a work, each of a millisecond at most; with a promise, the work waits for that. */
export type AsyncSteps<T> = Generator<Promise<void> | undefined, T, undefined>;

/**
 * Does works beside the model's steps: however many there are, they hold each round of the event loop for about 5 ms together, in the
 * order in which they came. Short ones of one round are done in it, as a round may be as long as a pass of the model. While
 * one waits for something, the others go on.
 */
export class EventLoopShare {
  readonly #waiting: (() => void)[] = [];
  #isRound = false;
  /** A work is at it. */
  #isTaken = false;
  #until = 0;

  /** What the work comes to. Rejects with what a step throws; what a promise is rejected with is thrown into the work. */
  async run<T>(work: AsyncSteps<T>): Promise<T> {
    let failed: { readonly error: unknown } | undefined;
    for (;;) {
      await this.#turn();
      let step: IteratorResult<Promise<void> | undefined, T>;
      try {
        do {
          step = failed ? work.throw(failed.error) : work.next();
          failed = undefined;
        } while (step.done !== true && step.value === undefined && performance.now() < this.#until);
      } finally {
        this.#isTaken = false;
        this.#handOn();
      }
      if (step.done === true) return step.value;
      await step.value?.catch((error: unknown) => (failed = { error }));
    }
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#isRound) this.#handOn();
      else this.#open();
    });
  }

  #open(): void {
    this.#isRound = true;
    this.#until = performance.now() + shareMs;
    this.#handOn();
    setImmediate(() => {
      if (this.#waiting.length > 0) this.#open();
      else this.#isRound = false;
    });
  }

  #handOn(): void {
    if (this.#isTaken || performance.now() >= this.#until) return;
    const next = this.#waiting.shift();
    if (!next) return;
    this.#isTaken = true;
    next();
  }
}

/** Lets works in one after the other, in the order in which they came. */
export class AsyncLock {
  #last: Promise<void> = Promise.resolve();

  /** `ready`: all who came before have left. `leave` is to be called whatever happens. */
  acquire(): { readonly ready: Promise<void>; readonly leave: () => void } {
    const ready = this.#last;
    let leave = (): void => {};
    const left = new Promise<void>((resolve) => (leave = resolve));
    this.#last = ready.then(() => left);
    return { ready, leave };
  }
}
