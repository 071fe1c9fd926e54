/**
 * How long a piece of prompts may take: about 50 ms. Where a step of answers takes half as long by itself or longer (a large model, a
 * slow machine), twice such a step: each piece pays the fixed price of a pass, and smaller ones would pay little else. For the same
 * reason there is a least size, below which a pass is mostly that price.
 */
const targetMs = 50;
const fewest = 16;

/** How many prompt tokens a step may evaluate, learned from how long steps take. */
export class PrefillBudget {
  #most: number;
  #tokens: number;
  #answerStepMs = 0;

  constructor(most: number) {
    this.#most = Math.max(fewest, most);
    this.#tokens = Math.min(64, this.#most);
  }

  get tokens(): number {
    return this.#tokens;
  }

  /** A step took so long: one with so many prompt tokens, or (0) one of answers. */
  observe(promptTokens: number, ms: number): void {
    if (promptTokens === 0) {
      this.#answerStepMs += (ms - this.#answerStepMs) * 0.2;
      return;
    }
    // A short rest of a prompt says little about the price of a token.
    if (promptTokens < this.#tokens / 2) return;
    const ideal = (Math.max(targetMs, 2 * this.#answerStepMs) * promptTokens) / Math.max(0.001, ms);
    // One slow step on a busy machine halves the pieces at most, one fast step doubles them.
    const next = Math.min(this.#tokens * 2, Math.max(this.#tokens / 2, ideal));
    this.#tokens = Math.round(Math.min(this.#most, Math.max(fewest, next)));
  }
}
