import {
  TokenBias,
  type LlamaContextSequence,
  type LlamaModel,
  type SequenceEvaluateOptions,
  type Token,
} from "node-llama-cpp";
import type { Sampling } from "../../../generation/request.ts";
import { certain } from "./thought-budget.ts";
import type { SampledToken, TokenSource } from "./token-source.ts";
import type { TokenConstraint } from "./token-constraint.ts";

export interface NativeSamplingOptions {
  readonly model: LlamaModel;
  readonly sampling: Sampling;
  readonly seed: number;
  /** Tokens that penalties look at: a live view, asked before each sample. */
  readonly penalized: () => Token[];
  /** Upper bound of their number, so that the sampler is made once. */
  readonly maxPenalized: number;
  readonly constraint?: TokenConstraint;
  /** The token that must come next; undefined: any. */
  readonly forced?: () => Token | undefined;
  /** Tokens that must not come next. */
  readonly banned?: () => readonly Token[];
}

/** Samples with llama.cpp's own chain, through the library's generator: the fast way. */
export class NativeSource implements TokenSource {
  readonly kind = "native";
  readonly #sequence: LlamaContextSequence;
  readonly #options: SequenceEvaluateOptions;
  #generator: ReturnType<LlamaContextSequence["evaluateWithMetadata"]> | undefined;

  constructor(sequence: LlamaContextSequence, options: NativeSamplingOptions) {
    this.#sequence = sequence;
    this.#options = evaluateOptions(options);
  }

  async next(input: readonly Token[]): Promise<SampledToken> {
    const result = this.#generator
      ? await this.#generator.next(input.slice())
      : await (this.#generator = this.#sequence.evaluateWithMetadata(input.slice(), {}, this.#options)).next();
    if (result.done) throw new Error("The library ended the generation by itself.");
    return result.value;
  }

  async release(): Promise<void> {
    await this.#generator?.return();
    this.#generator = undefined;
  }
}

/** Everything is set: the library's defaults are top-k 40, top-p 0.95 and temperature 0. */
function evaluateOptions(options: NativeSamplingOptions): SequenceEvaluateOptions {
  const { model, sampling, seed, penalized, maxPenalized, constraint, forced, banned } = options;
  const { repeatPenalty = 1, frequencyPenalty = 0, presencePenalty = 0, dry } = sampling;
  const biases = Object.entries(sampling.logitBias ?? {});
  const biasWith = (unseen: readonly number[]): TokenBias => {
    const bias = new TokenBias(model.tokenizer);
    for (const [token, logit] of biases) bias.set(Number(token) as Token, { logit });
    for (const token of unseen) bias.set(token as Token, "never");
    for (const token of banned?.() ?? []) bias.set(token, "never");
    const next = forced?.();
    if (next !== undefined) bias.set(next, { logit: certain });
    return bias;
  };
  return {
    temperature: sampling.temperature ?? 1,
    topK: topKOption(sampling.topK),
    topP: sampling.topP ?? 1,
    minP: sampling.minP ?? 0,
    seed,
    yieldEogToken: true,
    ...(sampling.xtc && sampling.xtc.probability > 0 && { xtc: sampling.xtc }),
    ...((repeatPenalty !== 1 || frequencyPenalty !== 0 || presencePenalty !== 0) && {
      repeatPenalty: {
        punishTokens: penalized,
        maxPunishTokens: maxPenalized,
        penalty: repeatPenalty,
        frequencyPenalty,
        presencePenalty,
      },
    }),
    ...(dry &&
      dry.multiplier > 0 && {
        dryRepeatPenalty: {
          strength: dry.multiplier,
          ...(dry.base !== undefined && { base: dry.base }),
          ...(dry.allowedLength !== undefined && { allowedLength: dry.allowedLength }),
          lastTokens: dry.lastN === undefined || dry.lastN < 0 ? null : dry.lastN,
          ...(dry.sequenceBreakers && { sequenceBreakers: [...dry.sequenceBreakers] }),
        },
      }),
    ...(forced || banned ? { tokenBias: () => biasWith([]) } : biases.length > 0 && { tokenBias: biasWith([]) }),
    ...(constraint && {
      grammarEvaluationState: () => constraint.evaluationState,
      tokenBias: () => biasWith(constraint.banned),
    }),
  };
}

/**
 * Top-k is off: no top-k sampler at all. A number ≤ 0 would make the library add one as large as the vocabulary, which sorts all of it
 * for every token; undefined would mean 40. It leaves out what is null, which its types do not say.
 */
function topKOption(topK: number | undefined): number {
  return topK !== undefined && topK > 0 ? topK : (null as unknown as number);
}
