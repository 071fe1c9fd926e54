import { NGramIndex } from "./n-gram-index.ts";

/** What is likely to come next, and for each of its tokens how likely it is that all up to it come so. */
export interface Draft {
  readonly tokens: readonly number[];
  readonly chances: readonly number[];
  /** It is a part of what was predicted. */
  readonly isPredicted: boolean;
}

export const noDraft: Draft = { tokens: [], chances: [], isPredicted: false };

/** Rows of so many tokens are looked up, the longest first. */
const sizes = [4, 2] as const;
/** A draft that is less likely than this to be right to its end is not worth a place in any batch. */
const leastChance = 0.05;
/** So many tokens of a text are taken in at once at most: a long prompt is not to keep a pass waiting. */
const mostAtOnce = 8192;

/**
 * Guesses how a text goes on: as it went on when its last tokens stood in it before. A place that was right is followed further; when it
 * was wrong, the last tokens are looked up again.
 *
 * How often it is right it knows without being asked: each token that comes is compared with what it would have guessed, by how many
 * tokens stood alike before it. So a text that does not repeat costs no drafts to find that out.
 */
export class Drafter {
  readonly #text: number[] = [];
  readonly #indexes = sizes.map((size) => new NGramIndex(this.#text, size));
  /** The place that is thought to come next; undefined: nothing is known. */
  #next: number | undefined;
  /** How many tokens before that place stand at the text's end, too. */
  #alike = 0;
  readonly #hits = new HitRates();
  /** It stands before the prompt, as if it had been said once. */
  readonly #prediction: readonly number[];
  /** Where the answer begins: what stands before it was not guessed. */
  readonly #answer: number;

  /** `prompt`: how many tokens it has. `prediction`: what the answer is said to be like. */
  constructor({ prompt, prediction = [] }: { readonly prompt: number; readonly prediction?: readonly number[] }) {
    this.#prediction = prediction;
    this.#answer = prediction.length + prompt;
  }

  /** Prompt and answer are this now: what was told before, and more. False: it was too much at once, and some of it is left. */
  read(tokens: readonly number[]): boolean {
    const predicted = this.#prediction.length;
    const whole = predicted + tokens.length;
    const end = Math.min(whole, this.#text.length + mostAtOnce);
    for (let at = this.#text.length; at < end; at++)
      this.#push((at < predicted ? this.#prediction[at] : tokens[at - predicted]) ?? 0);
    return end === whole;
  }

  /** At most so many tokens; it ends before one that `isLast`. */
  draft(most: number, isLast: (token: number) => boolean): Draft {
    const at = this.#next;
    if (at === undefined) return noDraft;
    const tokens: number[] = [];
    const chances: number[] = [];
    let chance = 1;
    for (let i = 0; i < most; i++) {
      const place = at + i;
      // A text that repeats what it repeats just now: its own draft goes on.
      const token = this.#text[place] ?? tokens[place - this.#text.length] ?? 0;
      chance *= this.#hits.rate(this.#alike + i);
      if (isLast(token) || chance < leastChance) break;
      tokens.push(token);
      chances.push(chance);
    }
    return { tokens, chances, isPredicted: at < this.#prediction.length };
  }

  #push(token: number): void {
    const end = this.#text.push(token);
    const guessed = this.#next === undefined ? undefined : this.#text[this.#next];
    if (guessed !== undefined && end > this.#answer) this.#hits.saw(this.#alike, guessed === token);
    let found: number | undefined;
    // Each takes it in, whether it is needed or not.
    for (const index of this.#indexes) {
      const place = index.add(end);
      found ??= place;
    }
    if (guessed === token && this.#next !== undefined) {
      this.#next++;
      this.#alike++;
    } else {
      this.#next = found;
      this.#alike = found === undefined ? 0 : this.#alikeBefore(found);
    }
    if (end === this.#answer && this.#prediction.length > 0) {
      this.#next = 0;
      this.#alike = likeAnswer;
    }
  }

  #alikeBefore(place: number): number {
    const end = this.#text.length;
    let alike = 0;
    while (alike < longestAlike && alike < place && this.#text[place - 1 - alike] === this.#text[end - 1 - alike])
      alike++;
    return alike;
  }
}

/** The beginning of a prediction is as likely as what followed so many tokens alike. */
const likeAnswer = 4;
/** What is expected before anything was seen, for guesses after 2 tokens alike, 4, 8, 16 and more. */
const expected = [0.4, 0.6, 0.8, 0.9, 0.95] as const;
const longestAlike = 2 ** expected.length;
/** How many tokens the expectation counts for, and how much of what was seen is left with each further one. */
const expectedCount = 4;
const kept = 0.98;

/** How often guesses were right of late, by how many tokens stood alike before them. */
class HitRates {
  readonly #seen = expected.map((rate) => ({ right: rate * expectedCount, all: expectedCount as number }));

  saw(alike: number, right: boolean): void {
    const seen = this.#of(alike);
    seen.right = seen.right * kept + (right ? 1 : 0);
    seen.all = seen.all * kept + 1;
  }

  rate(alike: number): number {
    const { right, all } = this.#of(alike);
    return right / all;
  }

  #of(alike: number): { right: number; all: number } {
    const group = Math.min(expected.length - 1, Math.max(0, 30 - Math.clz32(alike)));
    const seen = this.#seen[group];
    if (!seen) throw new RangeError(`There is no group for ${alike}.`);
    return seen;
  }
}
