/** A process counts as hung after this many looks without a sign of progress. */
const looks = 4;

/** The process, as its watch sees it. */
export interface Watched {
  /** There is something that the process should be at. */
  readonly isBusy: () => boolean;
  /** Asks for a sign of life: `sign` is to be called with the answer. */
  readonly ask: () => void;
  readonly onHung: () => void;
}

/**
 * Notices when a process that has work makes no progress: it does not answer, or it stays in the same turn of its work. Time is counted in
 * looks, so that a server that was itself stopped (by a debugger, by a suspended machine) does not mistake that for silence.
 */
export class HangWatch {
  readonly #watched: Watched;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;
  #silentLooks = 0;
  /** The turn of the last sign of life, and how many looks have seen it. */
  #turn: number | null = null;
  #sameLooks = 0;

  constructor(timeoutMs: number, watched: Watched) {
    this.#watched = watched;
    this.#everyMs = timeoutMs / looks;
  }

  /** Watches from now on, for as long as the process is busy. */
  start(): void {
    if (this.#timer !== undefined) return;
    this.#begin();
    this.#timer = setInterval(() => this.#look(), this.#everyMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** The process answered. `turn`: the number of what it is at; null: it waits for work. */
  sign(turn: number | null): void {
    this.#silentLooks = 0;
    if (turn === null || turn !== this.#turn) this.#sameLooks = 0;
    else this.#sameLooks++;
    this.#turn = turn;
  }

  #begin(): void {
    this.#silentLooks = 0;
    this.#sameLooks = 0;
    this.#turn = null;
    this.#watched.ask();
  }

  #look(): void {
    if (!this.#watched.isBusy()) return this.stop();
    this.#silentLooks++;
    if (this.#silentLooks >= looks || this.#sameLooks >= looks) {
      this.stop();
      this.#watched.onHung();
    } else this.#watched.ask();
  }
}
