import { isRow } from "../../vision/prompt-images.ts";
import type { Sampling } from "../../../../wire/core/request.ts";
import { defaultSampling } from "../../defaults.ts";
import type { PreparedRequest } from "../../preparing/prepared-request.ts";
import type { NativeContext } from "../c-api/native-context.ts";
import { SamplerChain, type TokenCandidates } from "../c-api/native-sampler.ts";
import type { Vocabulary } from "../tokens/vocabulary.ts";
import type { TokenConstraint } from "./constraint.ts";
import { greedy, readWindow, seededRandom, withToken, type LogitSampler, type LogitWindow } from "./logits.ts";
import { sampleSoftmax } from "./softmax-sampler.ts";
import type { AnswerGrammar } from "./token-grammar.ts";
import { forcedLogit } from "./token-limits.ts";

export interface TokenSamplerOptions {
  readonly context: NativeContext;
  readonly vocabulary: Vocabulary;
  readonly message: PreparedRequest;
  readonly seed: number;
  readonly prompt: readonly number[];
  readonly constraint?: TokenConstraint;
  /** The token that must come next; `undefined` if any may. */
  readonly forced?: () => number | undefined;
  /** Tokens that must not come next. */
  readonly banned?: () => readonly number[];
}

export interface SampledToken {
  readonly token: number;
  /** The unmodified distribution, if the request needs it. */
  readonly window?: LogitWindow;
}

/** llama.cpp's default (common.h, `common_params_sampling`). */
const defaultBreakers = ["\n", ":", '"', "*"] as const;
/** Sampled tokens that a grammar may reject before it is applied to the whole vocabulary. */
const maxRejections = 8;

/**
 * Samples the tokens of an answer. Biases, penalties and bans of single tokens are written to the logits in llama.cpp's memory. Greedy
 * sampling and sampling by temperature alone are done here; llama.cpp's sampler chain does the rest: DRY, top-k, top-p, min-p, XTC,
 * temperature, in this order.
 *
 * Where a grammar allows few tokens, only those are considered. Elsewhere the grammar checks the sampled token alone, which it usually
 * allows. If not, the token is banned and another one is sampled, which gives the same distribution as applying the grammar to all tokens
 * first. After several rejections it is applied to all tokens.
 */
export class TokenSampler {
  readonly #options: TokenSamplerOptions;
  readonly #sampling: Sampling;
  /** `undefined` if `#pick` samples. */
  readonly #chain: SamplerChain | undefined;
  readonly #pick: LogitSampler = greedy;
  readonly #usesHistory: boolean;
  readonly #counts = new Map<number, number>();
  readonly #generated: number[] = [];
  readonly #bias: ReadonlyMap<number, number>;
  /** Tokens that would end the answer too early. */
  readonly #endings: readonly number[];
  /** Logits before they were modified. */
  readonly #raw = new Map<number, number>();

  constructor(options: TokenSamplerOptions) {
    const { context, message, vocabulary, seed } = options;
    const { sampling, limits } = message;
    this.#options = options;
    this.#sampling = sampling;
    this.#bias = new Map(Object.entries(sampling.logitBias ?? {}).map(([token, bias]) => [Number(token), bias]));
    const { minTokens = 0, ignoreEos, stopTokenIds = [] } = limits;
    this.#endings =
      ignoreEos || minTokens > 0 ? [...vocabulary.endTokens(), ...(minTokens > 0 ? stopTokenIds : [])] : [];
    const { temperature = defaultSampling.temperature, topK, topP, minP, xtc, dry } = sampling;
    this.#usesHistory = dry !== undefined && dry.multiplier > 0;
    const isPlain = !this.#usesHistory && !(xtc && xtc.probability > 0);
    if (isPlain && temperature <= 0) return;
    if (isPlain && (topK ?? 0) <= 0 && (topP ?? 1) >= 1 && (minP ?? 0) <= 0) {
      this.#pick = sampleSoftmax(temperature, seededRandom(seed));
      return;
    }
    this.#chain = new SamplerChain(context.model, {
      temperature,
      seed,
      topK,
      topP,
      minP,
      xtc,
      ...(dry && this.#usesHistory && { dry: dryOptions(dry, context.capacity) }),
    });
  }

  /** Samples from the logits at an index of the last batch. Throws an Error if all tokens are banned. */
  sample(index: number): SampledToken {
    const { context, message, constraint, vocabulary } = this.#options;
    const logits = context.logits(index);
    const needsWindow = message.logprobs !== undefined || message.bestOf > message.n;
    const window = needsWindow ? readWindow(logits, message.logprobs?.top ?? 0) : undefined;
    this.#modify(logits);
    const grammar = constraint?.grammar;
    const likeliest = this.#raw.size === 0 ? window?.tokens[0] : undefined;
    const token = grammar ? this.#sampleWithin(grammar, logits, index) : this.#sampleAny(logits, index, likeliest);
    if (grammar && !vocabulary.endsGeneration(token)) grammar.accept(token);
    this.#generated.push(token);
    this.#counts.set(token, (this.#counts.get(token) ?? 0) + 1);
    return { token, ...(window && { window: withToken(window, token, this.#raw.get(token) ?? logits[token] ?? 0) }) };
  }

  free(): void {
    this.#chain?.free();
  }

  #sampleAny(logits: Float32Array, index: number, likeliest?: number): number {
    return this.#chain ? this.#chain.sample(this.#options.context, index) : this.#pick(logits, likeliest);
  }

  #sampleWithin(grammar: AnswerGrammar, logits: Float32Array, index: number): number {
    if (grammar.isNarrow) return this.#sampleAmong(grammar.among(logits));
    // A chain with a history records each sampled token as one of the answer.
    const max = this.#usesHistory ? 0 : maxRejections;
    for (let rejections = 0; rejections < max; rejections++) {
      const token = this.#sampleAny(logits, index);
      if (logits[token] === -Infinity) break;
      if (grammar.allows(token)) return token;
      this.#set(logits, token, -Infinity);
    }
    return this.#sampleAmong(grammar.among(logits));
  }

  #sampleAmong(candidates: TokenCandidates): number {
    if (candidates.length === 0) throw new Error("Every token is banned.");
    return this.#chain ? this.#chain.sampleAmong(candidates) : candidates.pick(this.#pick);
  }

  #set(logits: Float32Array, token: number, logit: number): void {
    if (!this.#raw.has(token)) this.#raw.set(token, logits[token] ?? 0);
    logits[token] = logit;
  }

  /** Applies biases, penalties, bans and the forced token to the logits. */
  #modify(logits: Float32Array): void {
    this.#raw.clear();
    const { constraint, forced, banned, message } = this.#options;
    for (const [token, bias] of this.#bias) this.#set(logits, token, (logits[token] ?? 0) + bias);
    const { repeatPenalty, frequencyPenalty, presencePenalty } = { ...defaultSampling, ...this.#sampling };
    if (repeatPenalty !== 1)
      for (const token of this.#recent()) {
        const logit = logits[token] ?? 0;
        this.#set(logits, token, logit > 0 ? logit / repeatPenalty : logit * repeatPenalty);
      }
    if (frequencyPenalty !== 0 || presencePenalty !== 0)
      for (const [token, count] of this.#counts)
        this.#set(logits, token, (logits[token] ?? 0) - count * frequencyPenalty - presencePenalty);
    const { minTokens = 0, ignoreEos } = message.limits;
    // Where a grammar allows the end of the answer, nothing else may follow.
    if (constraint?.grammar) for (const token of constraint.banned) this.#set(logits, token, -Infinity);
    else if (ignoreEos || this.#generated.length < minTokens)
      for (const token of this.#endings) this.#set(logits, token, -Infinity);
    for (const token of banned?.() ?? []) this.#set(logits, token, -Infinity);
    const next = forced?.();
    if (next !== undefined) this.#set(logits, next, forcedLogit);
  }

  /** The tokens to which the repeat penalty applies, including those of the prompt; none if `repeat_last_n` is 0, as in llama.cpp. */
  #recent(): ReadonlySet<number> {
    const requested = this.#sampling.repeatLastN ?? defaultSampling.repeatLastN;
    if (requested === 0) return new Set();
    const { prompt } = this.#options;
    const last = requested < 0 ? prompt.length + this.#generated.length : requested;
    const ofPrompt = last - this.#generated.length;
    return new Set(
      ofPrompt > 0
        ? [...prompt.slice(-ofPrompt).filter((token) => !isRow(token)), ...this.#generated]
        : this.#generated.slice(-last),
    );
  }
}

function dryOptions(
  dry: NonNullable<Sampling["dry"]>,
  capacity: number,
): { multiplier: number; base: number; allowedLength: number; lastN: number; breakers: readonly string[] } {
  const { multiplier, base, allowedLength, lastN } = { ...defaultSampling.dry, ...dry };
  const breakers = dry.sequenceBreakers ?? defaultBreakers;
  return { multiplier, base, allowedLength, lastN: lastN < 0 ? capacity : lastN, breakers };
}
