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

const empty = -1;
const smallest = 256;

/**
 * Where each row of `size` tokens of a growing text stood last. A token costs the same however long the text is: the last rows are found
 * by their hash, in a table of places that is compared with the text itself.
 */
export class NGramIndex {
  readonly #text: readonly number[];
  readonly #size: number;
  /** Of each row the place behind it; at most half of it is taken. */
  #table = new Int32Array(smallest).fill(empty);
  #taken = 0;

  /** `text`: read as far as `add` says; it only grows. */
  constructor(text: readonly number[], size: number) {
    this.#text = text;
    this.#size = size;
  }

  /**
   * Takes in the row that ends before a place; each place comes once, in order. Where the same row stood before: the place behind it, the
   * latest one; undefined: nowhere.
   */
  add(end: number): number | undefined {
    if (end < this.#size) return undefined;
    const at = this.#find(end);
    const before = this.#table[at] ?? empty;
    this.#table[at] = end;
    if (before !== empty) return before;
    if (++this.#taken * 2 > this.#table.length) this.#grow();
    return undefined;
  }

  /** Where in the table the row that ends before this place stands, or is to stand. */
  #find(end: number): number {
    const mask = this.#table.length - 1;
    let at = this.#hash(end) & mask;
    for (;;) {
      const other = this.#table[at] ?? empty;
      if (other === empty || this.#isSame(other, end)) return at;
      at = (at + 1) & mask;
    }
  }

  #isSame(a: number, b: number): boolean {
    for (let i = 1; i <= this.#size; i++) if (this.#text[a - i] !== this.#text[b - i]) return false;
    return true;
  }

  #hash(end: number): number {
    let hash = 0;
    for (let i = 1; i <= this.#size; i++) hash = Math.imul(hash ^ (this.#text[end - i] ?? 0), 0x9e3779b1);
    // The lower bits of a product know nothing of its higher ones.
    return hash ^ (hash >>> 15);
  }

  #grow(): void {
    const old = this.#table;
    this.#table = new Int32Array(old.length * 2).fill(empty);
    for (const end of old) if (end !== empty) this.#table[this.#find(end)] = end;
  }
}

export interface GuessesOptions {
  /** How many tokens the prompt has. */
  readonly prompt: number;
  /** What the answer is said to be like; asked for once, when a first guess is wanted. Absent: nothing is said. */
  readonly prediction?: () => readonly number[];
  /** An answer may end with this token; none is guessed behind it. */
  readonly isLast: (token: number) => boolean;
}

/** The guesses at one answer, and what became of them. */
export class Guesses {
  /** Tokens that were guessed and evaluated, and how many of them were right and saved a pass. */
  drafted = 0;
  accepted = 0;
  /** The same of those that a prediction brought. */
  predicted = { accepted: 0, rejected: 0 };
  readonly #options: GuessesOptions;
  /** Made when a guess is asked for; null: there are to be no more. */
  #drafter: Drafter | null | undefined;
  #last: Draft = noDraft;

  constructor(options: GuessesOptions) {
    this.#options = options;
  }

  /** At most so many tokens behind these, which are prompt and answer. */
  next(tokens: readonly number[], most: number): Draft {
    if (this.#drafter === undefined) {
      const { prompt, prediction } = this.#options;
      this.#drafter = new Drafter({ prompt, ...(prediction && { prediction: prediction() }) });
    }
    this.#last = this.#drafter?.read(tokens) === true ? this.#drafter.draft(most, this.#options.isLast) : noDraft;
    return this.#last;
  }

  /** So many of the last guess were evaluated, and so many of these were right. */
  judge(drafted: number, right: number): void {
    this.drafted += drafted;
    this.accepted += right;
    if (!this.#last.isPredicted) return;
    this.predicted.accepted += right;
    this.predicted.rejected += drafted - right;
  }

  /** There are to be no more of them. */
  stop(): void {
    this.#drafter = null;
  }
}
