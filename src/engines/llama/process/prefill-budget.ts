/**
 * How much longer a step may get because of prompts: about 50 ms. Where a plain step takes longer than that by itself (a large model, a
 * slow machine), as long again: smaller pieces would only pay the fixed price of a pass more often.
 */
const targetMs = 50;
const fewest = 8;

/** How many prompt tokens a step may evaluate, learned from how long steps take. */
export class PrefillBudget {
  #most: number;
  #tokens: number;
  /** How long a step takes without prompts. */
  #plainStepMs = 0;

  constructor(most: number) {
    this.#most = Math.max(fewest, most);
    this.#tokens = Math.min(64, this.#most);
  }

  get tokens(): number {
    return this.#tokens;
  }

  /** A step with so many prompt tokens took so long. */
  observe(tokens: number, ms: number): void {
    if (tokens === 0) {
      this.#plainStepMs += (ms - this.#plainStepMs) * 0.2;
      return;
    }
    // A short rest of a prompt says little about the price of a token.
    if (tokens < this.#tokens / 2) return;
    const perToken = Math.max(0.001, (ms - Math.min(this.#plainStepMs, ms / 2)) / tokens);
    const ideal = Math.max(targetMs, this.#plainStepMs) / perToken;
    // One slow step on a busy machine halves the pieces at most, one fast step doubles them.
    const next = Math.min(this.#tokens * 2, Math.max(this.#tokens / 2, ideal));
    this.#tokens = Math.round(Math.min(this.#most, Math.max(fewest, next)));
  }
}
