import type { TokenCandidates } from "../../src/engines/llama/process/c-api/native-sampler.ts";
import type { NativeModel } from "../../src/engines/llama/process/c-api/native-model.ts";

/** llama.cpp's own grammar, which the tests compare ours with. It has no bound on its time: give it small grammars only. */
export class NativeGrammar {
  readonly #model: NativeModel;
  readonly #candidates: TokenCandidates;
  readonly #pointer: unknown;

  constructor(model: NativeModel, gbnf: string, candidates: TokenCandidates) {
    this.#model = model;
    this.#candidates = candidates;
    this.#pointer = model.api.llama_sampler_init_grammar(model.vocab, gbnf, "root");
    if (this.#pointer === null) throw new Error(`llama.cpp cannot read the grammar: ${gbnf}`);
  }

  /** All tokens that may come next. */
  allowed(): number[] {
    this.#candidates.set(new Float32Array(this.#model.vocabularySize));
    this.#candidates.restrict(this.#pointer as bigint);
    return this.#candidates.tokens;
  }

  accept(token: number): void {
    this.#model.api.llama_sampler_accept(this.#pointer as bigint, token);
  }

  free(): void {
    this.#model.api.llama_sampler_free(this.#pointer as bigint);
  }
}
