/** Multiples of the patience. */
const totalWhileOthersWait = 4;
const longestStall = 20;
const longestTotal = 40;

/**
 * How long one answer's reader is waited for. A reader that takes nothing holds a slot of its model: while others wait for one, it may
 * stall for `patienceMs` at a time and four times that in all; while nobody waits, twenty and forty times that. Then `cut` is called.
 *
 * A fast stream fills its socket a thousand times a second, so a stall costs two readings of the clock: one timer serves the whole
 * answer, from its first stall on until `end`.
 */
export class SlowReader {
  readonly #patienceMs: number;
  readonly #othersWait: () => boolean;
  readonly #cut: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** Pieces not taken yet; a keep-alive may wait beside one of the answer. */
  #waiting = 0;
  #began = 0;
  #totalMs = 0;

  constructor(patienceMs: number, othersWait: () => boolean, cut: () => void) {
    this.#patienceMs = patienceMs;
    this.#othersWait = othersWait;
    this.#cut = cut;
  }

  get stalls(): boolean {
    return this.#waiting > 0;
  }

  /** Waits for `taken`: what was sent has been taken, or the reader is gone. */
  wait(taken: Promise<void>): Promise<void> {
    if (this.#waiting++ === 0) this.#began = performance.now();
    this.#timer ??= setInterval(() => this.#look(), Math.max(10, this.#patienceMs / 10));
    return taken.then(() => {
      if (--this.#waiting === 0) this.#totalMs += performance.now() - this.#began;
    });
  }

  /** The answer is over. */
  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    if (this.#waiting > 0 && this.#isOver(performance.now() - this.#began)) this.#cut();
  }

  #isOver(stalledMs: number): boolean {
    const stalls = stalledMs / this.#patienceMs;
    const all = (this.#totalMs + stalledMs) / this.#patienceMs;
    if (stalls >= longestStall || all >= longestTotal) return true;
    return (stalls >= 1 || all >= totalWhileOthersWait) && this.#othersWait();
  }
}
