const longestMs = 30_000;
const mostInARow = 8;
/** After so long without a crash, the next one counts as the first. */
const calmMs = 60_000;

/** How long to wait before a crashed process is started again: not at all the first time, then longer and longer. */
export class RestartPause {
  #crashes = 0;
  #last = -Infinity;

  /** Milliseconds to wait after a crash at this time; null: it is no use. */
  next(now: number): number | null {
    if (now - this.#last > calmMs) this.#crashes = 0;
    this.#last = now;
    this.#crashes++;
    if (this.#crashes > mostInARow) return null;
    return this.#crashes === 1 ? 0 : Math.min(longestMs, 250 * 2 ** (this.#crashes - 2));
  }
}
