/** Ends strings of JSON that have become too long: then it says that the quote must come next. */
export class StringBudget {
  readonly #limit: number;
  readonly #quote: number;
  #isInString = false;
  #isEscaped = false;
  #tokens = 0;

  /** `limit`: of one string, in tokens. `quote`: the token that says `"`. */
  constructor(limit: number, quote: number) {
    this.#limit = limit;
    this.#quote = quote;
  }

  /** The token that must come next; undefined: any. A grammar that forbids it has its way, and it is tried again. */
  get forced(): number | undefined {
    return this.#isInString && !this.#isEscaped && this.#tokens >= this.#limit ? this.#quote : undefined;
  }

  /** A token came that says `text`. `isJson`: it is part of JSON, and not of a thought. */
  read(text: string, isJson: boolean): void {
    if (!isJson) {
      this.#isInString = false;
      return;
    }
    for (const character of text) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (character === '"') {
        this.#isInString = !this.#isInString;
        this.#tokens = 0;
      } else if (character === "\\") this.#isEscaped = this.#isInString;
    }
    if (this.#isInString) this.#tokens++;
  }
}
