import type { NativeContext } from "./native-context.ts";
import type { Sampling } from "../../../../core/request.ts";
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
  readonly xtc?: NonNullable<Sampling["xtc"]>;
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

  /** Draws one of these. */
  sampleAmong(candidates: TokenCandidates): number {
    const token = candidates.sample(this.pointer);
    this.api.llama_sampler_accept(this.pointer, token);
    return token;
  }
}

/** `llama_token_data` (llama.h): id, logit and probability, of four bytes each. */
const numbers = 3;

/** `llama_token_data_array` (llama.h): what samplers are applied to. One is enough for all, as each is used at once. */
export class TokenCandidates {
  readonly #api: LlamaApi;
  readonly #pointer: Pointer;
  readonly #ids: Int32Array;
  readonly #logits: Float32Array;
  readonly #header: BigInt64Array;
  readonly #data: bigint;
  #length = 0;

  /** `most`: so many tokens the vocabulary has. */
  constructor(api: LlamaApi, most: number) {
    const { koffi } = api;
    this.#api = api;
    this.#data = koffi.alloc("uint8_t", most * numbers * 4) as bigint;
    const data = koffi.view(this.#data, most * numbers * 4);
    this.#ids = new Int32Array(data);
    this.#logits = new Float32Array(data);
    const header = koffi.alloc("uint8_t", 32) as bigint;
    this.#header = new BigInt64Array(koffi.view(header, 32));
    this.#pointer = header;
  }

  get length(): number {
    return this.#length;
  }

  /** Their ids. */
  get tokens(): number[] {
    return Array.from({ length: this.#length }, (_, i) => this.#ids[i * numbers] ?? 0);
  }

  /** Makes these tokens the candidates, or all, but those that are banned. */
  set(logits: Float32Array, tokens?: readonly number[]): void {
    this.#length = 0;
    if (tokens) for (const token of tokens) this.#add(token, logits[token] ?? -Infinity);
    else for (let token = 0; token < logits.length; token++) this.#add(token, logits[token] ?? -Infinity);
  }

  /** Makes one token the only candidate. */
  setOnly(token: number): void {
    this.#length = 0;
    this.#add(token, 0);
  }

  /** Leaves those that a grammar allows. */
  restrict(grammar: Pointer): void {
    this.#apply(grammar);
    const all = this.#length;
    this.#length = 0;
    for (let i = 0; i < all; i++) this.#add(this.#ids[i * numbers] ?? 0, this.#logits[i * numbers + 1] ?? -Infinity);
  }

  /** Draws one of them by a chain that ends with a draw. They may stand in another order then. */
  sample(chain: Pointer): number {
    this.#apply(chain);
    const selected = Number(this.#header[2]);
    if (selected < 0) throw new Error("The chain drew no token.");
    // Samplers may leave another array behind.
    if (this.#header[0] === BigInt.asIntN(64, this.#data)) return this.#ids[selected * numbers] ?? 0;
    return this.#api.koffi.decode(
      BigInt.asUintN(64, this.#header[0] ?? 0n),
      selected * numbers * 4,
      "int32_t",
    ) as number;
  }

  /** Draws one of them: `draw` finds the place of a logit among these. */
  pick(draw: (logits: Float32Array) => number): number {
    const logits = Float32Array.from({ length: this.#length }, (_, i) => this.#logits[i * numbers + 1] ?? 0);
    return this.#ids[draw(logits) * numbers] ?? 0;
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
