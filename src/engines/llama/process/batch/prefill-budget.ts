/**
 * How long a piece of prompts may take: about 50 ms. Where a step of answers takes half as long by itself or longer (a large model, a
 * slow machine), twice such a step: each piece pays the fixed price of a pass, and smaller ones would pay little else. For the same
 * reason there is a least size, below which a pass is mostly that price.
 */
const targetMs = 50;
const fewest = 16;

/**
 * llama.cpp computes batches of different sizes with different code, so that a token of a larger one may cost half as much, or less
 * (a 135M model on one thread of an AMD EPYC: 18 tokens 45 ms, 48 tokens 108 ms, 64 tokens 136 ms). What a token costs is learned for
 * these sizes. A piece has the size from which on others hardly pay more, if it does not take all too long, in milliseconds; and a size
 * of which nothing is known is tried where it does not take long.
 */
const sizes = [16, 32, 64, 128, 256] as const;
const worth = 0.75;
const mostMs = 250;
const mostTriedMs = 125;
/** What was measured so many pieces ago may be otherwise now. */
const oldAfter = 512;

/** Pieces may take so many times as long where no answer waits for them: a larger one pays the price of a pass for more tokens. */
const most = 8;
/** Beside answers, pieces for many prompts take so long at most, in milliseconds. */
const mostBesideMs = 400;

/** How many prompt tokens a step may evaluate, learned from how long steps take. */
export class PrefillBudget {
  #most: number;
  #tokens: number;
  #answerStepMs = 0;
  #tokenMs = 0;
  /** What a token costs in pieces of about so many, and when that was measured, in pieces. */
  readonly #costs = new Map<number, { readonly ms: number; readonly at: number }>();
  #pieces = 0;

  constructor(most: number) {
    this.#most = Math.max(fewest, most);
    this.#tokens = Math.min(64, this.#most);
  }

  get tokens(): number {
    return this.#tokens;
  }

  /**
   * The same beside so many answers, for so many prompts. Each prompt that waits is worth the time of a piece, up to 400 ms in
   * all: once they are read, their answers cost little more than those that run now, since a batch pays only when it is full.
   */
  tokensBeside(answers: number, prompts: number): number {
    if (this.#tokenMs === 0) return this.#tokens;
    const share = answers === 0 ? most : Math.min(most, prompts);
    const ms =
      answers === 0 ? share * this.#stepMs : Math.min(share * this.#stepMs, Math.max(mostBesideMs, this.#stepMs));
    const withinTime = Math.max(this.#tokens, ms / this.#tokenMs);
    return Math.round(Math.min(this.#most, this.#tokens * share, withinTime));
  }

  /** How long a step with so many prompt tokens will take, in milliseconds, as far as is known. */
  expectedMs(promptTokens: number): number {
    return this.#answerStepMs + promptTokens * this.#tokenMs;
  }

  /**
   * A step took so long: one with so many prompt tokens, or (0) one of answers. `answersMs`: how much of it is what the answers beside
   * the prompts would have taken without them.
   */
  observe(promptTokens: number, ms: number, answersMs = 0): void {
    if (promptTokens === 0) {
      this.#answerStepMs += (ms - this.#answerStepMs) * 0.2;
      return;
    }
    this.#learn(promptTokens, Math.max(ms / 4, ms - answersMs) / promptTokens);
    // A short rest of a prompt says little about the price of a token.
    if (promptTokens < this.#tokens / 2) return;
    this.#tokenMs = Math.max(0.001, ms / promptTokens);
    const ideal = (this.#stepMs * promptTokens) / Math.max(0.001, ms);
    // One slow step on a busy machine halves the pieces at most, one fast step doubles them.
    const next = Math.min(this.#tokens * 2, Math.max(this.#tokens / 2, ideal));
    this.#tokens = Math.round(Math.min(this.#most, Math.max(this.#fewest, next)));
  }

  /** What a piece is to take. */
  get #stepMs(): number {
    return Math.max(targetMs, 2 * this.#answerStepMs);
  }

  #learn(promptTokens: number, tokenMs: number): void {
    this.#pieces++;
    const size = sizes.findLast((known) => known <= promptTokens);
    if (size === undefined) return;
    const known = this.#cost(size);
    this.#costs.set(size, { ms: known === undefined ? tokenMs : known + (tokenMs - known) * 0.3, at: this.#pieces });
  }

  #cost(size: number): number | undefined {
    const cost = this.#costs.get(size);
    return cost && this.#pieces - cost.at <= oldAfter ? cost.ms : undefined;
  }

  get #fewest(): number {
    let chosen: number = sizes[0];
    let chosenMs = this.#cost(chosen);
    if (chosenMs === undefined) return fewest;
    for (const size of sizes.slice(1)) {
      const tokenMs = this.#cost(size);
      if (tokenMs === undefined) return size * chosenMs <= mostTriedMs ? size : chosen;
      if (tokenMs > chosenMs * worth || tokenMs * size > mostMs) continue;
      chosen = size;
      chosenMs = tokenMs;
    }
    return chosen;
  }
}
