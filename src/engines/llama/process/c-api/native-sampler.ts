import type { Sampling } from "../../../../wire/core/request.ts";
import type { LlamaApi } from "./llama-api.ts";
import type { NativeContext } from "./native-context.ts";
import type { NativeModel } from "./native-model.ts";
import type { Pointer } from "./structs.ts";

/** The parameters of llama.cpp's sampler chain, in the order in which they apply. */
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
  readonly xtc?: NonNullable<Sampling["xtc"]>;
  /** 0 for greedy sampling. */
  readonly temperature: number;
  readonly seed: number;
}

/** llama.cpp's chain of samplers for one answer. Its memory is freed at the latest with this object. */
export class SamplerChain {
  readonly #api: LlamaApi;
  readonly #pointer: Pointer;
  static readonly #registry = new FinalizationRegistry<() => void>((free) => free());

  constructor({ api, vocab }: NativeModel, options: ChainOptions) {
    const chain = api.llama_sampler_chain_init(api.llama_sampler_chain_default_params());
    this.#api = api;
    this.#pointer = chain;
    SamplerChain.#registry.register(this, () => api.llama_sampler_free(chain), this);
    const add = (sampler: Pointer): void => api.llama_sampler_chain_add(chain, sampler);
    const { dry, topK = 0, topP = 1, minP = 0, xtc, temperature, seed } = options;
    const isRandom = temperature > 0;
    if (dry) {
      const { multiplier, base, allowedLength, lastN, breakers } = dry;
      add(api.llama_sampler_init_dry(vocab, multiplier, base, allowedLength, lastN, breakers, breakers.length));
    }
    if (isRandom && topK > 0) add(api.llama_sampler_init_top_k(topK));
    if (isRandom && topP < 1) add(api.llama_sampler_init_top_p(topP, 1));
    if (isRandom && minP > 0) add(api.llama_sampler_init_min_p(minP, 1));
    if (xtc && xtc.probability > 0) add(api.llama_sampler_init_xtc(xtc.probability, xtc.threshold, 1, seed));
    if (isRandom && temperature !== 1) add(api.llama_sampler_init_temp(temperature));
    add(isRandom ? api.llama_sampler_init_dist(seed) : api.llama_sampler_init_greedy());
  }

  /** Samples from the logits at an index of the last batch. */
  sample(context: NativeContext, index: number): number {
    return this.#api.llama_sampler_sample(this.#pointer, context.pointer, index);
  }

  /** Samples one of the candidates. */
  sampleAmong(candidates: TokenCandidates): number {
    const token = candidates.sample(this.#pointer);
    this.#api.llama_sampler_accept(this.#pointer, token);
    return token;
  }

  free(): void {
    SamplerChain.#registry.unregister(this);
    this.#api.llama_sampler_free(this.#pointer);
  }
}

/** A `llama_token_data` (llama.h) has an id, a logit and a probability, of four bytes each. */
const numbers = 3;

/** A `llama_token_data_array` (llama.h), to which samplers apply. One is enough for all answers, because each uses it synchronously. */
export class TokenCandidates {
  readonly #api: LlamaApi;
  readonly #pointer: Pointer;
  readonly #ids: Int32Array;
  readonly #logits: Float32Array;
  readonly #header: BigInt64Array;
  readonly #data: bigint;
  #length = 0;

  /** `max`: the size of the vocabulary. */
  constructor(api: LlamaApi, max: number) {
    const { koffi } = api;
    this.#api = api;
    this.#data = koffi.alloc("uint8_t", max * numbers * 4) as bigint;
    const data = koffi.view(this.#data, max * numbers * 4);
    this.#ids = new Int32Array(data);
    this.#logits = new Float32Array(data);
    const header = koffi.alloc("uint8_t", 32) as bigint;
    this.#header = new BigInt64Array(koffi.view(header, 32));
    this.#pointer = header;
  }

  get length(): number {
    return this.#length;
  }

  /** The ids of the candidates. */
  get tokens(): number[] {
    return Array.from({ length: this.#length }, (_, i) => this.#ids[i * numbers] ?? 0);
  }

  /** Sets the candidates to these tokens, or to the whole vocabulary, except banned ones. */
  set(logits: Float32Array, tokens?: readonly number[]): void {
    this.#length = 0;
    if (tokens) for (const token of tokens) this.#add(token, logits[token] ?? -Infinity);
    else for (let token = 0; token < logits.length; token++) this.#add(token, logits[token] ?? -Infinity);
  }

  /** Removes the candidates that a sampler of llama.cpp bans. */
  restrict(grammar: Pointer): void {
    this.#apply(grammar);
    const all = this.#length;
    this.#length = 0;
    for (let i = 0; i < all; i++) this.#add(this.#ids[i * numbers] ?? 0, this.#logits[i * numbers + 1] ?? -Infinity);
  }

  /** Samples a candidate by a chain of llama.cpp, which may change their order. */
  sample(chain: Pointer): number {
    this.#apply(chain);
    const selected = Number(this.#header[2]);
    if (selected < 0) throw new Error("The sampler chain selected no token.");
    // Samplers may replace the array.
    if (this.#header[0] === BigInt.asIntN(64, this.#data)) return this.#ids[selected * numbers] ?? 0;
    return this.#api.koffi.decode(
      BigInt.asUintN(64, this.#header[0] ?? 0n),
      selected * numbers * 4,
      "int32_t",
    ) as number;
  }

  /** Samples a candidate. `sample` returns an index of the given logits. */
  pick(sample: (logits: Float32Array) => number): number {
    const logits = Float32Array.from({ length: this.#length }, (_, i) => this.#logits[i * numbers + 1] ?? 0);
    return this.#ids[sample(logits) * numbers] ?? 0;
  }

  #add(token: number, logit: number): void {
    if (logit === -Infinity) return;
    const at = this.#length++ * numbers;
    this.#ids[at] = token;
    this.#logits[at + 1] = logit;
    this.#logits[at + 2] = 0;
  }

  #apply(sampler: Pointer): void {
    this.#header[0] = BigInt.asIntN(64, this.#data);
    this.#header[1] = BigInt(this.#length);
    this.#header[2] = -1n;
    this.#header[3] = 0n;
    this.#api.llama_sampler_apply(sampler, this.#pointer);
  }
}
