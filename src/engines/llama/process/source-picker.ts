import type { LlamaContextSequence, LlamaModel, Token } from "node-llama-cpp";
import type { Sampling } from "../../../generation/request.ts";
import type { PreparedRequest } from "../preparing/prepared-request.ts";
import { NativeSource } from "./native-source.ts";
import { RawSource, WatchedSource } from "./raw-source.ts";
import { certain } from "./thought-budget.ts";
import type { TokenConstraint } from "./token-constraint.ts";
import type { TokenSource } from "./token-source.ts";
import type { Vocabulary } from "./vocabulary.ts";

export interface SourcePickerOptions {
  readonly model: LlamaModel;
  readonly vocabulary: Vocabulary;
  readonly message: PreparedRequest;
  readonly seed: number;
  readonly prompt: readonly Token[];
  readonly maxTokens: number;
  readonly constraint?: TokenConstraint;
  /** The token that must come next; undefined: any. */
  readonly forced?: () => Token | undefined;
  /** Tokens that must not come next. */
  readonly banned?: () => readonly Token[];
}

/** llama.cpp's and vLLM's default for how far the repeat penalty looks back. */
const defaultRepeatLastN = 64;

/**
 * Decides how a choice's tokens are sampled, and keeps the history that penalties need.
 *
 * - llama.cpp's own chain, where it does all that is asked;
 * - our draw from the raw logits, where logprobs are wanted or tokens are banned that end a generation (the library ignores a bias on
 *   those), or where the repeat penalty (which looks at the prompt, too) meets OpenAI's penalties (which look at the answer alone);
 * - both side by side, where raw logits are wanted beside a grammar or DRY.
 */
export class SourcePicker {
  readonly #options: SourcePickerOptions;
  readonly #sampling: Sampling;
  readonly #counts = new Map<number, number>();
  readonly #generated: Token[] = [];
  readonly #bias = new Map<number, number>();
  readonly #banned: readonly Token[];
  readonly #minTokens: number;
  #current: { readonly wanted: Way; readonly source: TokenSource } | undefined;

  constructor(options: SourcePickerOptions) {
    this.#options = options;
    const { sampling, limits } = options.message;
    this.#sampling = sampling;
    for (const [token, bias] of Object.entries(sampling.logitBias ?? {})) this.#bias.set(Number(token), bias);
    this.#minTokens = limits.minTokens ?? 0;
    const endsBanned = limits.ignoreEos || this.#minTokens > 0;
    const stops = (limits.stopTokenIds ?? []) as readonly Token[];
    this.#banned = endsBanned ? [...options.vocabulary.endTokens(), ...(this.#minTokens > 0 ? stops : [])] : [];
  }

  /** A token was sampled: penalties will see it. */
  sampled(token: Token): void {
    this.#generated.push(token);
    this.#counts.set(token, (this.#counts.get(token) ?? 0) + 1);
  }

  /** The source for the next token, after so many. It changes when a ban ends. */
  source(sequence: LlamaContextSequence, generated: number): TokenSource {
    const wanted = this.#way(generated);
    if (this.#current?.wanted !== wanted) this.#current = { wanted, source: this.#open(wanted, sequence) };
    return this.#current.source;
  }

  #way(generated: number): Way {
    const { message, vocabulary, constraint } = this.#options;
    const needsRaw = message.logprobs !== undefined || message.bestOf > message.n;
    const onlyNative = constraint?.evaluationState !== undefined || (this.#sampling.dry?.multiplier ?? 0) > 0;
    if (onlyNative) return needsRaw ? "watched" : "native";
    const bansEnds = message.limits.ignoreEos === true || generated < this.#minTokens;
    const biasesEnds = [...this.#bias.keys()].some((token) => vocabulary.endsGeneration(token as Token));
    const { repeatPenalty = 1, frequencyPenalty = 0, presencePenalty = 0 } = this.#sampling;
    const bothPenalties = repeatPenalty !== 1 && (frequencyPenalty !== 0 || presencePenalty !== 0);
    return needsRaw || bansEnds || biasesEnds || bothPenalties ? "raw" : "native";
  }

  #open(way: Way, sequence: LlamaContextSequence): TokenSource {
    const { model, vocabulary, seed, maxTokens, constraint, forced, banned } = this.#options;
    if (way === "raw") {
      return new RawSource(sequence, {
        sampling: this.#sampling,
        seed,
        vocabularySize: vocabulary.size,
        bias: () => this.#biasNow(),
        history: () => ({ counts: this.#counts, recent: this.#recent() }),
      });
    }
    const repeats = (this.#sampling.repeatPenalty ?? 1) !== 1;
    const native = new NativeSource(sequence, {
      model,
      sampling: this.#sampling,
      seed,
      penalized: repeats ? () => this.#lastTokens() : () => this.#generated,
      maxPenalized: repeats ? this.#repeatLastN : Math.max(1, Math.min(maxTokens, sequence.contextSize)),
      ...(constraint && { constraint }),
      ...(forced && { forced }),
      ...(banned && { banned }),
    });
    if (way === "native") return native;
    return new WatchedSource(sequence, native, vocabulary.size);
  }

  get #repeatLastN(): number {
    const asked = this.#sampling.repeatLastN ?? defaultRepeatLastN;
    return asked < 0 ? this.#options.prompt.length + this.#options.maxTokens : Math.max(1, asked);
  }

  #lastTokens(): Token[] {
    const last = this.#repeatLastN;
    const generated = this.#generated.slice(-last);
    const missing = last - generated.length;
    return missing > 0 ? [...this.#options.prompt.slice(-missing), ...generated] : generated;
  }

  #recent(): ReadonlySet<number> {
    return (this.#sampling.repeatPenalty ?? 1) === 1 ? none : new Set(this.#lastTokens());
  }

  #biasNow(): ReadonlyMap<number, number> {
    const forced = this.#options.forced?.();
    if (forced !== undefined) return new Map([...this.#bias, [forced, certain]]);
    const bansEnds = this.#options.message.limits.ignoreEos === true || this.#generated.length < this.#minTokens;
    const banned = [...(bansEnds ? this.#banned : []), ...(this.#options.banned?.() ?? [])];
    if (banned.length === 0) return this.#bias;
    return new Map([...this.#bias, ...banned.map((token) => [token, -Infinity] as const)]);
  }
}

type Way = "native" | "raw" | "watched";

const none: ReadonlySet<number> = new Set();
