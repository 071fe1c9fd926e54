import type { LlamaContextSequence, Token } from "node-llama-cpp";
import type { Sampling } from "../../../generation/request.ts";
import { drawToken, type History } from "./draw-token.ts";
import { readLogits, readPromptLogits, windowSize } from "./raw-logits.ts";
import { seededRandom } from "./seed.ts";
import type { SampledToken, TokenSource } from "./token-source.ts";

export interface RawSamplingOptions {
  readonly sampling: Sampling;
  readonly seed: number;
  readonly vocabularySize: number;
  /** Added to logits; −Infinity bans a token. Asked before each draw. */
  readonly bias: () => ReadonlyMap<number, number>;
  readonly history: () => History;
}

/** Reads the raw logits and draws from them here: for logprobs, and for bans that the library's sampler does not take. */
export class RawSource implements TokenSource {
  readonly kind = "raw";
  readonly #sequence: LlamaContextSequence;
  readonly #options: RawSamplingOptions;
  readonly #random: () => number;
  /** The last draw was from so flat a distribution that the next may well be, too. */
  #flat = false;

  constructor(sequence: LlamaContextSequence, options: RawSamplingOptions) {
    this.#sequence = sequence;
    this.#options = options;
    this.#random = seededRandom(options.seed);
  }

  async next(input: readonly Token[]): Promise<SampledToken> {
    const { sampling, vocabularySize, bias, history } = this.#options;
    const chances = [this.#random(), this.#random()] as const;
    // A recurrent state cannot be taken back by one token, so there the window must be whole at once.
    const wanted = this.#flat || this.#sequence.needsCheckpoints ? "whole" : "window";
    let window = await readLogits(this.#sequence, input, wanted, vocabularySize);
    let token = drawToken(window, sampling, history(), bias(), chances);
    if (token === null && window.others > 0) {
      await takeBack(this.#sequence, 1);
      window = await readLogits(this.#sequence, input.slice(-1), "whole", vocabularySize);
      token = drawToken(window, sampling, history(), bias(), chances);
    }
    if (token === null) throw new Error("Every token is banned.");
    this.#flat = window.others === 0 && window.tokens.indexOf(token as Token) >= windowSize;
    return { token: token as Token, window };
  }

  async release(): Promise<void> {}
}

/** Samples with another source, and reads the raw logits beside it: for logprobs together with what only llama.cpp's chain does. */
export class WatchedSource implements TokenSource {
  readonly kind = "raw";
  readonly #sequence: LlamaContextSequence;
  readonly #sampler: TokenSource;
  readonly #vocabularySize: number;

  constructor(sequence: LlamaContextSequence, sampler: TokenSource, vocabularySize: number) {
    this.#sequence = sequence;
    this.#sampler = sampler;
    this.#vocabularySize = vocabularySize;
  }

  /** Evaluates the last token twice: the library samples with a chain, or shows raw logits, never both at once. */
  async next(input: readonly Token[]): Promise<SampledToken> {
    const last = input.slice(-1);
    let window = await readLogits(this.#sequence, input, "window", this.#vocabularySize);
    await takeBack(this.#sequence, 1);
    const { token } = await this.#sampler.next(last);
    if (!window.tokens.includes(token)) {
      // A grammar may force what the model finds unlikely: fetch its logit, too.
      await takeBack(this.#sequence, 1);
      window = (await readPromptLogits(this.#sequence, last, [token], windowSize, this.#vocabularySize))[0] ?? window;
    }
    return { token, window };
  }

  async release(): Promise<void> {
    await this.#sampler.release();
  }
}

async function takeBack(sequence: LlamaContextSequence, count: number): Promise<void> {
  const end = sequence.nextTokenIndex;
  await sequence.eraseContextTokenRanges([{ start: end - count, end }]);
}
