import type { Candidates } from "./candidates.ts";
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
  sampleAmong(candidates: Candidates): number {
    const token = candidates.draw(this.pointer);
    this.api.llama_sampler_accept(this.pointer, token);
    return token;
  }
}
