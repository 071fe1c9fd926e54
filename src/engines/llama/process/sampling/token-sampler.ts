import type { Sampling } from "../../../../core/request.ts";
import type { PreparedRequest } from "../../preparing/prepared-request.ts";
import type { NativeContext } from "../c-api/native-context.ts";
import { type TokenCandidates, SamplerChain } from "../c-api/native-sampler.ts";
import { argmax, readWindow, withToken, type LogitWindow, seededRandom, sampleSoftmax } from "./logits.ts";
import { certain } from "./token-limits.ts";
import type { TokenConstraint } from "./constraint.ts";
import type { GrammarAnswer } from "./token-grammar.ts";
import type { Vocabulary } from "../tokens/vocabulary.ts";

export interface TokenSamplerOptions {
  readonly context: NativeContext;
  readonly vocabulary: Vocabulary;
  readonly message: PreparedRequest;
  readonly seed: number;
  readonly prompt: readonly number[];
  readonly constraint?: TokenConstraint;
  /** The token that must come next; undefined: any. */
  readonly forced?: () => number | undefined;
  /** Tokens that must not come next. */
  readonly banned?: () => readonly number[];
}

export interface SampledToken {
  readonly token: number;
  /** The raw distribution that it was drawn from, where it was asked for. */
  readonly window?: LogitWindow;
}

/** llama.cpp's and vLLM's default for how far the repeat penalty looks back. */
const defaultRepeatLastN = 64;
/** llama.cpp's defaults for DRY (common.h, `common_params_sampling`). */
const dryDefaults = { base: 1.75, allowedLength: 2, breakers: ["\n", ":", '"', "*"] } as const;
/** How many tokens that a grammar does not allow may be sampled before it is asked about all tokens. */
const fewTries = 8;

/**
 * Draws a choice's tokens. What concerns single tokens (biases, penalties, bans) is written into the logits where llama.cpp keeps them;
 * the likeliest token is found there, too, or one is drawn by the temperature alone. For all other draws llama.cpp's own chain reads
 * them: DRY, top-k, top-p, min-p, XTC, temperature, in this order.
 *
 * Where a grammar allows few tokens, only those are looked at. Elsewhere it is asked about the drawn token alone, which most often is
 * allowed. If not, that token is out and the next one is drawn, which makes the same distribution as asking
 * about all tokens first; after a few of them all are asked about.
 */
export class TokenSampler {
  readonly #options: TokenSamplerOptions;
  readonly #sampling: Sampling;
  /** undefined: `pick` draws. */
  readonly #chain: SamplerChain | undefined;
  readonly #pick: (logits: Float32Array) => number = argmax;
  readonly #hasHistory: boolean;
  readonly #counts = new Map<number, number>();
  readonly #generated: number[] = [];
  readonly #bias: ReadonlyMap<number, number>;
  readonly #endings: readonly number[];
  /** What stood in the logits before it was changed. */
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
    const { temperature = 1, topK, topP, minP, xtc, dry } = sampling;
    this.#hasHistory = dry !== undefined && dry.multiplier > 0;
    const isPlain = !this.#hasHistory && !(xtc && xtc.probability > 0);
    if (isPlain && temperature <= 0) return;
    if (isPlain && (topK ?? 0) <= 0 && (topP ?? 1) >= 1 && (minP ?? 0) <= 0) {
      this.#pick = sampleSoftmax(temperature, seededRandom(seed));
      return;
    }
    this.#chain = new SamplerChain(context.model, {
      temperature,
      seed,
      ...(topK !== undefined && { topK }),
      ...(topP !== undefined && { topP }),
      ...(minP !== undefined && { minP }),
      ...(xtc && { xtc }),
      ...(dry && this.#hasHistory && { dry: dryOptions(dry, context.capacity) }),
    });
  }

  /** Draws from the logits at an index of the last pass. Throws an Error when no token is left. */
  sample(index: number): SampledToken {
    const { context, message, constraint } = this.#options;
    const logits = context.logits(index);
    const needsRaw = message.logprobs !== undefined || message.bestOf > message.n;
    const window = needsRaw ? readWindow(logits, message.logprobs?.top ?? 0) : undefined;
    this.#change(logits);
    const grammar = constraint?.grammar;
    const token = grammar ? this.#drawWithin(grammar, logits, index) : this.#draw(logits, index);
    if (grammar && !this.#options.vocabulary.endsGeneration(token)) grammar.accept(token);
    this.#generated.push(token);
    this.#counts.set(token, (this.#counts.get(token) ?? 0) + 1);
    return { token, ...(window && { window: withToken(window, token, this.#raw.get(token) ?? logits[token] ?? 0) }) };
  }

  free(): void {
    this.#chain?.free();
  }

  #draw(logits: Float32Array, index: number): number {
    return this.#chain ? this.#chain.sample(this.#options.context, index) : this.#pick(logits);
  }

  #drawWithin(grammar: GrammarAnswer, logits: Float32Array, index: number): number {
    if (grammar.isNarrow) return this.#drawAmong(grammar.among(logits));
    // A chain with a history takes each token that it draws for one that came.
    const most = this.#hasHistory ? 0 : fewTries;
    for (let tries = 0; tries < most; tries++) {
      const token = this.#draw(logits, index);
      if (logits[token] === -Infinity) break;
      if (grammar.allows(token)) return token;
      this.#set(logits, token, -Infinity);
    }
    return this.#drawAmong(grammar.among(logits));
  }

  #drawAmong(candidates: TokenCandidates): number {
    if (candidates.length === 0) throw new Error("Every token is banned.");
    return this.#chain ? this.#chain.sampleAmong(candidates) : candidates.pick(this.#pick);
  }

  #set(logits: Float32Array, token: number, logit: number): void {
    if (!this.#raw.has(token)) this.#raw.set(token, logits[token] ?? 0);
    logits[token] = logit;
  }

  /** Writes biases, penalties and bans into the logits. */
  #change(logits: Float32Array): void {
    this.#raw.clear();
    const { constraint, forced, banned, message } = this.#options;
    for (const [token, bias] of this.#bias) this.#set(logits, token, (logits[token] ?? 0) + bias);
    const { repeatPenalty = 1, frequencyPenalty = 0, presencePenalty = 0 } = this.#sampling;
    if (repeatPenalty !== 1)
      for (const token of this.#recent()) {
        const logit = logits[token] ?? 0;
        this.#set(logits, token, logit > 0 ? logit / repeatPenalty : logit * repeatPenalty);
      }
    if (frequencyPenalty !== 0 || presencePenalty !== 0)
      for (const [token, count] of this.#counts)
        this.#set(logits, token, (logits[token] ?? 0) - count * frequencyPenalty - presencePenalty);
    const { minTokens = 0, ignoreEos } = message.limits;
    // Where a grammar lets a turn end, nothing else may come.
    if (constraint?.grammar) for (const token of constraint.banned) this.#set(logits, token, -Infinity);
    else if (ignoreEos || this.#generated.length < minTokens)
      for (const token of this.#endings) this.#set(logits, token, -Infinity);
    for (const token of banned?.() ?? []) this.#set(logits, token, -Infinity);
    const next = forced?.();
    if (next !== undefined) this.#set(logits, next, certain);
  }

  /** The tokens that the repeat penalty applies to, those of the prompt included; none where `repeat_last_n` is 0, as in llama.cpp. */
  #recent(): ReadonlySet<number> {
    const requested = this.#sampling.repeatLastN ?? defaultRepeatLastN;
    if (requested === 0) return new Set();
    const { prompt } = this.#options;
    const last = requested < 0 ? prompt.length + this.#generated.length : requested;
    const missing = last - this.#generated.length;
    return new Set(missing > 0 ? [...prompt.slice(-missing), ...this.#generated] : this.#generated.slice(-last));
  }
}

function dryOptions(
  dry: NonNullable<Sampling["dry"]>,
  room: number,
): { multiplier: number; base: number; allowedLength: number; lastN: number; breakers: readonly string[] } {
  const { multiplier, base = dryDefaults.base, allowedLength = dryDefaults.allowedLength, lastN = -1 } = dry;
  const breakers = dry.sequenceBreakers ?? dryDefaults.breakers;
  return { multiplier, base, allowedLength, lastN: lastN < 0 ? room : lastN, breakers };
}
