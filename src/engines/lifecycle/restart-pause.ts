const maxPauseMs = 60_000;
/** After this time without a crash, the next one counts as the first. */
const resetAfterMs = 120_000;

/** The pause before a crashed process is restarted: none the first time, then exponentially longer, up to a minute. */
export class RestartPause {
  #crashes = 0;
  #last = -Infinity;

  /** The number of successive crashes. */
  get crashes(): number {
    return this.#crashes;
  }

  /** Returns the pause, in milliseconds, after a crash at the time `now`. */
  next(now: number): number {
    if (now - this.#last > resetAfterMs) this.#crashes = 0;
    this.#last = now;
    this.#crashes++;
    return this.#crashes === 1 ? 0 : Math.min(maxPauseMs, 250 * 2 ** (this.#crashes - 2));
  }

  /** An answer is complete: the next crash counts as the first. */
  succeeded(): void {
    this.#crashes = 0;
  }
}
