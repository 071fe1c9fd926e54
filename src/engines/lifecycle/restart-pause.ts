const maxPauseMs = 60_000;
/** After so long without a crash, the next one counts as the first. */
const calmMs = 120_000;

/** How long to wait before a crashed process is started again: not at all the first time, then longer and longer, up to a minute. */
export class RestartPause {
  #crashes = 0;
  #last = -Infinity;

  /** Crashes in a row, the last one included. */
  get crashes(): number {
    return this.#crashes;
  }

  /** Milliseconds to wait after a crash at this time. */
  next(now: number): number {
    if (now - this.#last > calmMs) this.#crashes = 0;
    this.#last = now;
    this.#crashes++;
    return this.#crashes === 1 ? 0 : Math.min(maxPauseMs, 250 * 2 ** (this.#crashes - 2));
  }

  /** An answer came to its end: the next crash counts as the first. */
  succeeded(): void {
    this.#crashes = 0;
  }
}
