/** Passes of single answers must be so much faster than one of all, or chance would decide. */
const worth = 0.95;
/** Of so many passes the fastest one counts: whatever else the machine does only makes them slower. Fewer than `fewest` say nothing. */
const lastPasses = 8;
const fewest = 4;
/** After so many tokens of each answer the slower way is measured again; where it was clearly slower, after more. */
const oldAfter = 256;
const clearlySlower = 1.5;
const oldAfterThen = 1024;

/** What was learned of passes with so many answers. */
interface Measured {
  /** The last ones, in milliseconds. */
  readonly ms: number[];
  /** When the last one was, in answers computed. */
  last: number;
}

/**
 * Whether answers are faster computed all in one pass or one after the other. One pass reads the model's weights once, so it is nearly
 * always faster. But llama.cpp computes a few tokens with other code than a single one, which on some processors takes several times as
 * long: Q8_0 with one thread of an AMD EPYC with AVX-512 took 7 ms for one token, 30 for two, 44 for four, 48 for eight (measured on
 * 2026-11-22 with llama.cpp's own llama-bench, and with its libraries as this uses them). There four answers are a third faster one by one.
 */
export class PassWidths {
  readonly #measured = new Map<number, Measured>();
  #computed = 0;

  /** So many answers are to be computed one after the other. */
  oneByOne(answers: number): boolean {
    const together = this.expectedMs(answers);
    if (answers < 2 || together === undefined) return false;
    const alone = this.expectedMs(1);
    if (alone === undefined) return true;
    const ratio = (alone * answers) / (together * worth);
    const isFaster = ratio < 1;
    const slower = isFaster ? answers : 1;
    const tokens = Math.max(ratio, 1 / ratio) < clearlySlower ? oldAfter : oldAfterThen;
    if (this.#computed - (this.#measured.get(slower)?.last ?? 0) <= tokens * answers) return isFaster;
    this.#measured.delete(slower);
    return !isFaster;
  }

  /** How long a pass with so many answers takes, in milliseconds; undefined: nothing is known. */
  expectedMs(answers: number): number | undefined {
    const measured = this.#measured.get(answers);
    return measured && measured.ms.length >= fewest ? Math.min(...measured.ms) : undefined;
  }

  /** How long a token of each takes in the faster way, in milliseconds; undefined: nothing is known. */
  fasterMs(answers: number): number | undefined {
    const together = this.expectedMs(answers);
    const alone = this.expectedMs(1);
    if (alone === undefined) return together;
    return Math.min(alone * answers, together ?? Infinity);
  }

  /** A pass of so many answers, a token each, took so long with all that belongs to it. */
  observe(answers: number, ms: number): void {
    this.#computed += answers;
    const measured = this.#measured.get(answers) ?? { ms: [], last: 0 };
    measured.last = this.#computed;
    measured.ms.push(ms);
    if (measured.ms.length > lastPasses) measured.ms.shift();
    this.#measured.set(answers, measured);
  }
}
