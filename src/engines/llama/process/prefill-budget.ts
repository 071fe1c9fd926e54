/**
 * How long a piece of prompts may take: about 50 ms. Where a step of answers takes half as long by itself or longer (a large model, a
 * slow machine), twice such a step: each piece pays the fixed price of a pass, and smaller ones would pay little else. For the same
 * reason there is a least size, below which a pass is mostly that price.
 */
const targetMs = 50;
const fewest = 16;

/**
 * From so many tokens on, llama.cpp computes in another way, which may cost half as much a token: then a piece has as many, if that does
 * not take all too long, in milliseconds.
 */
const large = { tokens: 64, mostMs: 250, worth: 0.7 } as const;
/** A piece may take so many times as long where no answer waits for it: a larger one pays the price of a pass for more tokens. */
const most = 8;

/** How many prompt tokens a step may evaluate, learned from how long steps take. */
export class PrefillBudget {
  #most: number;
  #tokens: number;
  #answerStepMs = 0;
  #tokenMs = 0;
  /** What a token costs in pieces smaller than large ones, and in those. */
  #smallTokenMs: number | undefined;
  #largeTokenMs: number | undefined;

  constructor(most: number) {
    this.#most = Math.max(fewest, most);
    this.#tokens = Math.min(64, this.#most);
  }

  get tokens(): number {
    return this.#tokens;
  }

  /**
   * The same beside so many answers, for so many prompts: those who wait for a first token may be more than those who wait for the next,
   * and a batch pays only when it is full.
   */
  tokensBeside(answers: number, prompts: number): number {
    if (this.#tokenMs === 0) return this.#tokens;
    const share = answers === 0 ? most : Math.min(most, Math.max(1, prompts / answers));
    const withinTime = Math.max(this.#tokens, (share * this.#stepMs) / this.#tokenMs);
    return Math.round(Math.min(this.#most, this.#tokens * share, withinTime));
  }

  /** How long a step with so many prompt tokens will take, in milliseconds, as far as is known. */
  expectedMs(promptTokens: number): number {
    return this.#answerStepMs + promptTokens * this.#tokenMs;
  }

  /** A step took so long: one with so many prompt tokens, or (0) one of answers. */
  observe(promptTokens: number, ms: number): void {
    if (promptTokens === 0) {
      this.#answerStepMs += (ms - this.#answerStepMs) * 0.2;
      return;
    }
    // A short rest of a prompt says little about the price of a token.
    if (promptTokens < this.#tokens / 2) return;
    this.#tokenMs = Math.max(0.001, ms / promptTokens);
    if (promptTokens < large.tokens) this.#smallTokenMs = this.#tokenMs;
    else this.#largeTokenMs = this.#tokenMs;
    const ideal = (this.#stepMs * promptTokens) / Math.max(0.001, ms);
    // One slow step on a busy machine halves the pieces at most, one fast step doubles them.
    const next = Math.min(this.#tokens * 2, Math.max(this.#tokens / 2, ideal));
    this.#tokens = Math.round(Math.min(this.#most, Math.max(this.#fewest, next)));
  }

  /** What a piece is to take. */
  get #stepMs(): number {
    return Math.max(targetMs, 2 * this.#answerStepMs);
  }

  get #fewest(): number {
    const [small, big] = [this.#smallTokenMs, this.#largeTokenMs];
    if (small === undefined || big === undefined) return fewest;
    return big < small * large.worth && big * large.tokens <= large.mostMs ? large.tokens : fewest;
  }
}
