/** A prompt that waits to be read. */
export interface WaitingPrompt {
  readonly choice: { readonly promptLeft: number };
  /** Who came later has the larger number. */
  readonly order: number;
}

/**
 * Which prompts are read first: by turns the one with the least left, so that a short one does not wait for a long one to end, and the
 * one that came first, so that short ones that keep coming do not hold it up for ever.
 */
export class PromptTurns {
  #shortestFirst = true;

  next<Prompt extends WaitingPrompt>(prompts: readonly Prompt[]): readonly Prompt[] {
    const shortestFirst = this.#shortestFirst;
    this.#shortestFirst = !shortestFirst;
    return prompts.toSorted(
      (one, other) => (shortestFirst ? one.choice.promptLeft - other.choice.promptLeft : 0) || one.order - other.order,
    );
  }
}
