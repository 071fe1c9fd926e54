/**
 * How many drafted tokens a pass may have in all. Few sizes, so that each is soon measured; llama.cpp computes larger batches in other
 * ways, so that two more tokens may cost four times a pass, and sixteen hardly more than two.
 */
const sizes = [1, 2, 3, 5, 7, 11, 15, 23, 31] as const;
export const maxDrafted = 31;

/** What is thought of a size that was never tried, for each token: little, so that it is tried. */
const hopedShare = 0.05;
/** It must be worth so many times what a pass without drafts is, of which measurements are not sure. */
const worth = 1.08;
/** An answer that gains nothing by a pass may be slowed down by so much. */
const leastRate = 0.9;
/** After so many passes with drafts one goes without, to know what those cost now. */
const plainEvery = 32;
/** What was measured so many passes ago may be otherwise now: it is thought to be so much of it, and tried again if that would pay. */
const oldAfter = 2000;
const oldShare = 0.75;

/** What was learned of passes of one size. */
interface Measured {
  /** Milliseconds at a pace of 1. */
  ms: number;
  /** How many passes there were; the first one alone says nothing, since it may have loaded what it computes with. */
  passes: number;
  /** The number of the last one, of all passes. */
  last: number;
}

/**
 * Which drafts pay. It learns how long passes take with so many answers and so many drafted tokens, and takes those drafts by which more
 * tokens a second are expected in all than without, and by which no answer is much slower.
 */
export class SpeculationBudget {
  readonly #always: boolean;
  readonly #measured = new Map<number, Measured>();
  /** How fast passes are now, in all sizes: texts grow, and other work comes and goes. */
  #pace = 1;
  #passes = 0;
  #withDrafts = 0;

  /** `always`: takes all drafts, whether they pay or not. */
  constructor({ always }: { readonly always: boolean }) {
    this.#always = always;
  }

  /**
   * How much of each draft to take. `chances`: for each of the answers that have a draft, how likely it is that each of its tokens is
   * right with all before it. `answers`: how many there are, those without a draft included. `most`: drafted tokens in all. `otherwise`:
   * how long a token of each answer takes where nothing is drafted, in milliseconds, if that is not a pass of all of them.
   */
  plan(
    chances: readonly (readonly number[])[],
    { answers, most, otherwise }: { readonly answers: number; readonly most: number; readonly otherwise?: number },
  ): readonly number[] {
    const nothing = chances.map(() => 0);
    const together = this.expectedMs(answers, 0);
    const plain = this.#always ? 0 : (otherwise ?? together);
    if (plain === undefined || (!this.#always && this.#withDrafts >= plainEvery)) return nothing;
    const lengths = [...nothing];
    const gains = chances.map(() => 1);
    let gained = 0;
    let best = nothing;
    let bestRate = (worth * answers) / plain;
    for (let drafted = 1; drafted <= most; drafted++) {
      const next = likeliestNext(chances, lengths);
      if (next === undefined) break;
      const chance = chances[next]?.[lengths[next] ?? 0] ?? 0;
      lengths[next] = (lengths[next] ?? 0) + 1;
      gains[next] = (gains[next] ?? 0) + chance;
      gained += chance;
      if (this.#always) best = lengths;
      if (this.#always || !(sizes as readonly number[]).includes(drafted)) continue;
      const ms = this.#guessedMs(answers, drafted, together ?? plain);
      const slowest = chances.length < answers ? 1 : Math.min(...gains);
      const rate = (answers + gained) / ms;
      if (rate <= bestRate || slowest / ms < leastRate / plain) continue;
      bestRate = rate;
      best = [...lengths];
    }
    return best;
  }

  /** How long a pass of so many answers and drafted tokens takes, in milliseconds; undefined: nothing is known. */
  expectedMs(answers: number, drafted: number): number | undefined {
    const measured = this.#measured.get(keyOf(answers, drafted));
    return measured && measured.passes > 1 ? measured.ms * this.#pace : undefined;
  }

  /** A pass without prompts took so long. */
  observe(answers: number, drafted: number, ms: number): void {
    this.#passes++;
    this.#withDrafts = drafted > 0 ? this.#withDrafts + 1 : 0;
    const key = keyOf(answers, drafted);
    const measured = this.#measured.get(key);
    if (!measured) {
      this.#measured.set(key, { ms: ms / this.#pace, passes: 1, last: this.#passes });
      return;
    }
    measured.last = this.#passes;
    if (measured.passes++ === 1) {
      measured.ms = Math.min(measured.ms, ms / this.#pace);
      return;
    }
    // One pass that something else held up says little.
    const now = Math.min(2 * this.#pace, Math.max(this.#pace / 2, ms / measured.ms));
    this.#pace += (now - this.#pace) * 0.2;
    measured.ms += (Math.min(2 * measured.ms, ms / this.#pace) - measured.ms) * 0.2;
  }

  /** The same for any number of drafted tokens: from what is known of fewer and of more. */
  #guessedMs(answers: number, drafted: number, plain: number): number {
    const [fewer, fewerMs] = this.#nearest(answers, drafted, -1) ?? [0, plain];
    if (fewer === drafted) return fewerMs;
    const more = this.#nearest(answers, drafted, 1);
    if (!more) return fewerMs + (drafted - fewer) * hopedShare * plain;
    const [moreTokens, moreMs] = more;
    return fewerMs + ((moreMs - fewerMs) * (drafted - fewer)) / (moreTokens - fewer);
  }

  /** The next size in this direction of which something is known, this one included. */
  #nearest(answers: number, drafted: number, direction: 1 | -1): readonly [tokens: number, ms: number] | undefined {
    const inOrder = direction === 1 ? sizes : [...sizes].reverse();
    for (const size of inOrder) {
      if ((size - drafted) * direction < 0) continue;
      const measured = this.#measured.get(keyOf(answers, size));
      if (!measured || measured.passes === 1) continue;
      const isOld = this.#passes - measured.last > oldAfter;
      return [size, measured.ms * this.#pace * (isOld ? oldShare : 1)];
    }
    return undefined;
  }
}

function keyOf(answers: number, drafted: number): number {
  return answers * (maxDrafted + 1) + drafted;
}

/** Of which draft the next token is the likeliest to be right. */
function likeliestNext(chances: readonly (readonly number[])[], lengths: readonly number[]): number | undefined {
  let best: number | undefined;
  let largest = 0;
  for (const [i, own] of chances.entries()) {
    const chance = own[lengths[i] ?? 0] ?? 0;
    if (chance <= largest) continue;
    largest = chance;
    best = i;
  }
  return best;
}
