/** Tokens that are likely to come next. */
export interface Draft {
  readonly tokens: readonly number[];
  /** For each token, the probability that it and all before it are accepted. */
  readonly probabilities: readonly number[];
  /** The draft comes from the request's `prediction`. */
  readonly isPredicted: boolean;
}

export const noDraft: Draft = { tokens: [], probabilities: [], isPredicted: false };

/** Lengths of the n-grams that are looked up, the longest first. */
const nGramSizes = [4, 2] as const;
/** A draft ends before it becomes less likely than this to be accepted. */
const minProbability = 0.05;
/** Tokens that are indexed in one step, so that a long prompt does not delay a decode. */
const maxIndexedTokens = 8192;
/** The start of a prediction is as likely as a continuation after this number of equal tokens. */
const predictionMatch = 4;

/**
 * Drafts the continuation of a text by prompt lookup: it repeats what followed the last tokens where they occurred before. While drafts
 * from a position are right, later drafts continue there; after a wrong one, the last tokens are looked up again.
 *
 * Its acceptance rates need no feedback: each new token is compared with the one it would have drafted, by the number of equal tokens
 * before it. So a text without repetition costs no drafts to find that out.
 */
export class Drafter {
  readonly #text: number[] = [];
  readonly #indexes = nGramSizes.map((size) => new NGramIndex(this.#text, size));
  /** Position in the text of the token that is expected next; `undefined` if the last tokens did not occur before. */
  #next: number | undefined;
  /** Number of tokens before `#next` that are equal to the end of the text. */
  #match = 0;
  readonly #rates = new AcceptanceRates(priorRates);
  /** Is placed before the prompt, as an earlier occurrence of the answer. */
  readonly #prediction: readonly number[];
  /** Position of the answer. Tokens before it were not drafted. */
  readonly #answer: number;

  /** `prompt`: number of prompt tokens. `prediction`: tokens that the answer is expected to resemble. */
  constructor({ prompt, prediction = [] }: { readonly prompt: number; readonly prediction?: readonly number[] }) {
    this.#prediction = prediction;
    this.#answer = prediction.length + prompt;
  }

  /** Adds what is new in the tokens of prompt and answer. Returns false if there was too much for one call, and more is left. */
  read(tokens: readonly number[]): boolean {
    const predicted = this.#prediction.length;
    const length = predicted + tokens.length;
    const end = Math.min(length, this.#text.length + maxIndexedTokens);
    for (let at = this.#text.length; at < end; at++)
      this.#push((at < predicted ? this.#prediction[at] : tokens[at - predicted]) ?? 0);
    return end === length;
  }

  /** Drafts at most `max` tokens, up to one for which `isLast` is true. */
  draft(max: number, isLast: (token: number) => boolean): Draft {
    const start = this.#next;
    if (start === undefined) return noDraft;
    const tokens: number[] = [];
    const probabilities: number[] = [];
    let probability = 1;
    for (let i = 0; i < max; i++) {
      const at = start + i;
      // Past the end of the text, in a text that repeats itself, the draft continues with its own tokens.
      const token = this.#text[at] ?? tokens[at - this.#text.length] ?? 0;
      probability *= this.#rates.rate(matchGroup(this.#match + i));
      if (isLast(token) || probability < minProbability) break;
      tokens.push(token);
      probabilities.push(probability);
    }
    return { tokens, probabilities, isPredicted: start < this.#prediction.length };
  }

  #push(token: number): void {
    const end = this.#text.push(token);
    const expected = this.#next === undefined ? undefined : this.#text[this.#next];
    if (expected !== undefined && end > this.#answer) this.#rates.observe(matchGroup(this.#match), expected === token);
    let found: number | undefined;
    // Every index needs the token, whether its result is used or not.
    for (const index of this.#indexes) {
      const position = index.add(end);
      found ??= position;
    }
    if (expected === token && this.#next !== undefined) {
      this.#next++;
      this.#match++;
    } else {
      this.#next = found;
      this.#match = found === undefined ? 0 : this.#matchBefore(found);
    }
    if (end === this.#answer && this.#prediction.length > 0) {
      this.#next = 0;
      this.#match = predictionMatch;
    }
  }

  #matchBefore(position: number): number {
    const end = this.#text.length;
    let match = 0;
    while (match < maxMatch && match < position && this.#text[position - 1 - match] === this.#text[end - 1 - match])
      match++;
    return match;
  }
}

/** Assumed acceptance rates after 2 equal tokens, 4, 8, 16 and more, before anything was observed. */
const priorRates = [0.4, 0.6, 0.8, 0.9, 0.95] as const;
const maxMatch = 2 ** priorRates.length;
/** The number of tokens that a prior counts for, and the share of earlier observations that is left after each new one. */
export const priorTokens = 4;
export const decay = 0.98;

function matchGroup(match: number): number {
  return Math.min(priorRates.length - 1, Math.max(0, 30 - Math.clz32(match)));
}

/** How often drafted tokens were right lately, for each of several groups of them. */
export class AcceptanceRates {
  readonly #groups: readonly { accepted: number; total: number }[];

  /** `priors`: the rate of each group before anything was observed. */
  constructor(priors: readonly number[]) {
    this.#groups = priors.map((rate) => ({ accepted: rate * priorTokens, total: priorTokens }));
  }

  /** Rates that start from these. */
  copy(): AcceptanceRates {
    return new AcceptanceRates(this.#groups.map((_, at) => this.rate(at)));
  }

  observe(at: number, accepted: boolean): void {
    const group = this.#group(at);
    group.accepted = group.accepted * decay + (accepted ? 1 : 0);
    group.total = group.total * decay + 1;
  }

  rate(at: number): number {
    const { accepted, total } = this.#group(at);
    return accepted / total;
  }

  #group(at: number): { accepted: number; total: number } {
    const group = this.#groups[at];
    if (!group) throw new RangeError(`There is no group ${at}.`);
    return group;
  }
}

/**
 * The last position of each n-gram of a growing text, by its hash: of n-grams with the same one, that of the last. The time per token does
 * not depend on the length of the text.
 */
export class NGramIndex {
  readonly #text: readonly number[];
  readonly #size: number;
  /** Positions after n-grams. */
  readonly #positions = new Map<number, number>();

  /** `text` only grows, and is read up to the positions that were added. */
  constructor(text: readonly number[], size: number) {
    this.#text = text;
    this.#size = size;
  }

  /**
   * Adds the n-gram that ends before a position. Positions are added once, in ascending order. Returns the position after the previous
   * occurrence of the same n-gram, or `undefined`.
   */
  add(end: number): number | undefined {
    if (end < this.#size) return undefined;
    const hash = this.#hash(end);
    const before = this.#positions.get(hash);
    this.#positions.set(hash, end);
    return before !== undefined && this.#isSame(before, end) ? before : undefined;
  }

  #isSame(a: number, b: number): boolean {
    for (let i = 1; i <= this.#size; i++) if (this.#text[a - i] !== this.#text[b - i]) return false;
    return true;
  }

  #hash(end: number): number {
    let hash = 0;
    for (let i = 1; i <= this.#size; i++) hash = Math.imul(hash ^ (this.#text[end - i] ?? 0), 0x9e3779b1);
    // The low bits of a product do not depend on the high bits of its factors.
    return hash ^ (hash >>> 15);
  }
}

/** The expected number of accepted tokens. */
export function expectedTokens({ probabilities }: Draft): number {
  return probabilities.reduce((sum, probability) => sum + probability, 0);
}

/** At most `max` tokens, up to one for which `isLast` is true. */
function cut(draft: Draft, max: number, isLast: (token: number) => boolean): Draft {
  const end = draft.tokens.findIndex(isLast);
  const length = Math.min(Math.max(0, max), end < 0 ? Infinity : end);
  return { ...draft, tokens: draft.tokens.slice(0, length), probabilities: draft.probabilities.slice(0, length) };
}

export interface TaskDraftsOptions {
  /** Number of prompt tokens. */
  readonly prompt: number;
  /** Tokenizes what the answer is expected to resemble; called when the first draft is requested. */
  readonly prediction?: () => readonly number[];
  /** An answer may end with this token; nothing is drafted after it. */
  readonly isLast: (token: number) => boolean;
}

/** The drafts for one answer, with the counts of decoded and accepted tokens. */
export class TaskDrafts {
  draftedTokens = 0;
  acceptedTokens = 0;
  /** The part of these that comes from the request's `prediction`. */
  predicted = { accepted: 0, rejected: 0 };
  readonly #options: TaskDraftsOptions;
  /** Is created with the first draft; `null` after `stop`. */
  #drafter: Drafter | null | undefined;
  #last: Draft = noDraft;
  /** The draft of another model, and the number of tokens before it. */
  #offered: { readonly at: number; readonly draft: Draft } | undefined;

  constructor(options: TaskDraftsOptions) {
    this.#options = options;
  }

  get isStopped(): boolean {
    return this.#drafter === null;
  }

  /** Another model's draft after the first `at` tokens. It is used if it is likely to be longer than one from the text. */
  offer(at: number, draft: Draft): void {
    this.#offered = { at, draft };
  }

  /** Drafts at most `max` tokens after these, which are the prompt and the answer so far. */
  next(tokens: readonly number[], max: number): Draft {
    if (this.#drafter === undefined) {
      const { prompt, prediction } = this.#options;
      this.#drafter = new Drafter({ prompt, ...(prediction && { prediction: prediction() }) });
    }
    this.#last = this.#drafter?.read(tokens) === true ? this.#drafter.draft(max, this.#options.isLast) : noDraft;
    const offered = this.#offered;
    this.#offered = undefined;
    if (offered?.at === tokens.length && this.#drafter !== null) {
      const draft = cut(offered.draft, max, this.#options.isLast);
      if (expectedTokens(draft) > expectedTokens(this.#last)) this.#last = draft;
    }
    return this.#last;
  }

  /** Records how many tokens of the last draft were decoded, and how many of these were accepted. */
  record(drafted: number, accepted: number): void {
    this.draftedTokens += drafted;
    this.acceptedTokens += accepted;
    if (!this.#last.isPredicted) return;
    this.predicted.accepted += accepted;
    this.predicted.rejected += drafted - accepted;
  }

  /** Makes no more drafts. */
  stop(): void {
    this.#drafter = null;
  }
}
