/** Multiples of the patience. */
const totalWhileOthersWait = 4;
const longestStall = 20;
const longestTotal = 40;

/**
 * How long one answer's reader is waited for. A reader that takes nothing holds a slot of its model: while others wait for one, it may
 * stall for `patienceMs` at a time and four times that in all; while nobody waits, twenty and forty times that. Then `cut` is called.
 */
export class SlowReader {
  readonly #patienceMs: number;
  readonly #othersWait: () => boolean;
  readonly #cut: () => void;
  #totalMs = 0;

  constructor(patienceMs: number, othersWait: () => boolean, cut: () => void) {
    this.#patienceMs = patienceMs;
    this.#othersWait = othersWait;
    this.#cut = cut;
  }

  /** Waits for `taken`: what was sent has been taken, or the reader is gone. */
  async wait(taken: Promise<void>): Promise<void> {
    const began = performance.now();
    const timer = setInterval(
      () => {
        if (this.#isOver(performance.now() - began)) this.#cut();
      },
      Math.max(10, this.#patienceMs / 10),
    );
    await taken;
    clearInterval(timer);
    this.#totalMs += performance.now() - began;
  }

  #isOver(stalledMs: number): boolean {
    const stalls = stalledMs / this.#patienceMs;
    const all = (this.#totalMs + stalledMs) / this.#patienceMs;
    if (stalls >= longestStall || all >= longestTotal) return true;
    return (stalls >= 1 || all >= totalWhileOthersWait) && this.#othersWait();
  }
}
