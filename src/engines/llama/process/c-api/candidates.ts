import type { LlamaApi } from "./llama-api.ts";
import type { Pointer } from "./structs.ts";

/** `llama_token_data` (llama.h): id, logit and probability, of four bytes each. */
const numbers = 3;

/** `llama_token_data_array` (llama.h): what samplers are applied to. One is enough for all, as each is used at once. */
export class Candidates {
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
  draw(chain: Pointer): number {
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
