/** The bias of a token that must come: beyond what any logit can be. */
export const certain = 10_000;

type Phase = "reasoning" | "content" | "call";

export interface ThoughtBudgetOptions {
  /** How long a choice's thoughts may be together. */
  readonly tokens: number;
  /** The tokens that close a thought: the first time, …, and every further time. */
  readonly closings: readonly (readonly number[])[];
  /** The prompt has begun a thought. */
  readonly thinksAlready: boolean;
}

/** Closes a choice's thoughts when they have been long enough: then it says which token must come next. */
export class ThoughtBudget {
  readonly #closings: readonly (readonly number[])[];
  #left: number;
  #closed = 0;
  #before: Phase;
  /** What is still to come of a closing. */
  #forced: readonly number[] = [];
  /** A thought was closed, and its reader has not left it yet. */
  #leaving = false;

  constructor({ tokens, closings, thinksAlready }: ThoughtBudgetOptions) {
    this.#closings = closings;
    this.#left = tokens;
    this.#before = thinksAlready ? "reasoning" : "content";
    if (thinksAlready && tokens <= 0) this.#close();
  }

  /** The token that must come next; undefined: any. */
  get forced(): number | undefined {
    return this.#forced[0];
  }

  /** A token came; `phase`: where the reader of the text is after it. */
  read(token: number, phase: Phase): void {
    const wasThinking = this.#before === "reasoning";
    this.#before = phase;
    if (phase !== "reasoning") this.#leaving = false;
    if (this.#forced.length > 0) {
      // A grammar may forbid the closing here; then it is tried again after the next token.
      const came = token === this.#forced[0];
      this.#forced = came ? this.#forced.slice(1) : [];
      this.#leaving = came && this.#forced.length === 0 && phase === "reasoning";
      return;
    }
    if (phase !== "reasoning" || this.#leaving) return;
    if (wasThinking) this.#left--;
    if (this.#left <= 0) this.#close();
  }

  #close(): void {
    this.#forced = this.#closings[Math.min(this.#closed, this.#closings.length - 1)] ?? [];
    this.#closed++;
  }
}
