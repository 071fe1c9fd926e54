import { Drafter, noDraft, type Draft } from "./drafter.ts";

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
