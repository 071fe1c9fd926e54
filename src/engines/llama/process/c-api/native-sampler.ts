import type { NativeContext } from "./native-context.ts";
import type { NativeModel } from "./native-model.ts";
import type { LlamaApi } from "./llama-api.ts";
import type { Pointer } from "./structs.ts";

/** How llama.cpp's own chain draws a token from logits, in this order. */
export interface ChainOptions {
  readonly dry?: {
    readonly multiplier: number;
    readonly base: number;
    readonly allowedLength: number;
    readonly lastN: number;
    readonly breakers: readonly string[];
  };
  readonly topK?: number;
  readonly topP?: number;
  readonly minP?: number;
  readonly xtc?: { readonly probability: number; readonly threshold: number };
  /** 0: the likeliest token. */
  readonly temperature: number;
  readonly seed: number;
}

/** Memory of llama.cpp's that is freed at the latest with the object that holds it. */
class NativeSampler {
  readonly pointer: Pointer;
  readonly api: LlamaApi;
  static readonly #left = new FinalizationRegistry<() => void>((free) => free());

  constructor(api: LlamaApi, pointer: Pointer) {
    this.api = api;
    this.pointer = pointer;
    NativeSampler.#left.register(this, () => api.llama_sampler_free(pointer), this);
  }

  free(): void {
    NativeSampler.#left.unregister(this);
    this.api.llama_sampler_free(this.pointer);
  }
}

/** llama.cpp's chain of samplers, for one sequence. */
export class SamplerChain extends NativeSampler {
  constructor({ api, vocab }: NativeModel, options: ChainOptions) {
    const chain = api.llama_sampler_chain_init(api.llama_sampler_chain_default_params());
    const add = (sampler: Pointer): void => api.llama_sampler_chain_add(chain, sampler);
    const { dry, topK = 0, topP = 1, minP = 0, xtc, temperature, seed } = options;
    const draws = temperature > 0;
    if (dry) {
      const { multiplier, base, allowedLength, lastN, breakers } = dry;
      add(api.llama_sampler_init_dry(vocab, multiplier, base, allowedLength, lastN, breakers, breakers.length));
    }
    if (draws && topK > 0) add(api.llama_sampler_init_top_k(topK));
    if (draws && topP < 1) add(api.llama_sampler_init_top_p(topP, 1));
    if (draws && minP > 0) add(api.llama_sampler_init_min_p(minP, 1));
    if (xtc && xtc.probability > 0) add(api.llama_sampler_init_xtc(xtc.probability, xtc.threshold, 1, seed));
    if (draws && temperature !== 1) add(api.llama_sampler_init_temp(temperature));
    add(draws ? api.llama_sampler_init_dist(seed) : api.llama_sampler_init_greedy());
    super(api, chain);
  }

  /** Draws from the logits at an index of the last pass. */
  sample(context: NativeContext, index: number): number {
    return this.api.llama_sampler_sample(this.pointer, context.pointer, index);
  }
}

/** A grammar as llama.cpp follows it, for one answer. */
export class NativeGrammar extends NativeSampler {
  readonly #candidates: Candidates;

  private constructor(api: LlamaApi, pointer: Pointer, candidates: Candidates) {
    super(api, pointer);
    this.#candidates = candidates;
  }

  /** null: llama.cpp does not take it. */
  static parse({ api, vocab }: NativeModel, gbnf: string, candidates: Candidates): NativeGrammar | null {
    const pointer = api.llama_sampler_init_grammar(vocab, gbnf, "root");
    return pointer === null ? null : new NativeGrammar(api, pointer, candidates);
  }

  /** One that stands where this one does. */
  copy(): NativeGrammar {
    return new NativeGrammar(this.api, this.api.llama_sampler_clone(this.pointer), this.#candidates);
  }

  /** Which of these tokens may come next. */
  allowed(tokens: readonly number[]): number[] {
    this.#candidates.set(tokens);
    this.api.llama_sampler_apply(this.pointer, this.#candidates.pointer);
    return this.#candidates.possible();
  }

  /** Bans all tokens that may not come next: of those that are possible at all. */
  restrict(logits: Float32Array): void {
    this.#candidates.setPossible(logits);
    this.api.llama_sampler_apply(this.pointer, this.#candidates.pointer);
    this.#candidates.banOthers(logits);
  }

  /** A token came, which is allowed and does not end the answer. */
  accept(token: number): void {
    this.api.llama_sampler_accept(this.pointer, token);
  }
}

/** `llama_token_data_array` (llama.h): what samplers are applied to. One is enough for all, as each is used at once. */
export class Candidates {
  readonly pointer: Pointer;
  readonly #ids: Int32Array;
  readonly #logits: Float32Array;
  readonly #header: BigInt64Array;
  readonly #data: bigint;
  #length = 0;

  constructor({ koffi }: LlamaApi, most: number) {
    // Three numbers of four bytes for each: id, logit, probability.
    this.#data = koffi.alloc("uint8_t", most * 12) as bigint;
    const data = koffi.view(this.#data, most * 12);
    this.#ids = new Int32Array(data);
    this.#logits = new Float32Array(data);
    const header = koffi.alloc("uint8_t", 32) as bigint;
    this.#header = new BigInt64Array(koffi.view(header, 32));
    this.pointer = header;
  }

  /** Makes these tokens the candidates, all alike. */
  set(tokens: readonly number[]): void {
    this.#length = 0;
    for (const token of tokens) this.#add(token);
    this.#close();
  }

  /** The same of all tokens that are not banned. */
  setPossible(logits: Float32Array): void {
    this.#length = 0;
    for (let token = 0; token < logits.length; token++) if (logits[token] !== -Infinity) this.#add(token);
    this.#close();
  }

  /** Bans those of the candidates that a sampler has ruled out. */
  banOthers(logits: Float32Array): void {
    for (let i = 0; i < this.#length; i++)
      if (this.#logits[i * 3 + 1] === -Infinity) logits[this.#ids[i * 3] ?? 0] = -Infinity;
  }

  #add(token: number): void {
    const at = this.#length++ * 3;
    this.#ids[at] = token;
    this.#logits[at + 1] = 1;
    this.#logits[at + 2] = 0;
  }

  #close(): void {
    this.#header[0] = BigInt.asIntN(64, this.#data);
    this.#header[1] = BigInt(this.#length);
    this.#header[2] = -1n;
    this.#header[3] = 0n;
  }

  /** Those that no sampler has ruled out. */
  possible(): number[] {
    const tokens: number[] = [];
    for (let i = 0; i < this.#length; i++)
      if (this.#logits[i * 3 + 1] !== -Infinity) tokens.push(this.#ids[i * 3] ?? 0);
    return tokens;
  }
}
