import type { Batch, Koffi } from "./structs.ts";

/** The tokens of one pass, in llama.cpp's memory: each with its sequence, its place there, and whether its logits are wanted. */
export class NativeBatch {
  readonly struct: Batch;
  readonly #tokens: Int32Array;
  readonly #positions: Int32Array;
  readonly #sequences: Int32Array;
  readonly #outputs: Int8Array;
  readonly #koffi: Koffi;
  readonly #memory: readonly bigint[];
  #length = 0;

  constructor(koffi: Koffi, size: number) {
    this.#koffi = koffi;
    const numbers = (): [bigint, Int32Array] => {
      const at = koffi.alloc("int32_t", size) as bigint;
      return [at, new Int32Array(koffi.view(at, size * 4))];
    };
    const [token, tokens] = numbers();
    const [pos, positions] = numbers();
    const [counts, sequenceCounts] = numbers();
    const [sequence, sequences] = numbers();
    const pointers = koffi.alloc("void *", size) as bigint;
    const outputs = koffi.alloc("int8_t", size) as bigint;
    // Each token belongs to one sequence, whose number stands in a list of its own.
    sequenceCounts.fill(1);
    const lists = new BigUint64Array(koffi.view(pointers, size * 8));
    for (let i = 0; i < size; i++) lists[i] = sequence + BigInt(i * 4);
    this.#memory = [token, pos, counts, sequence, pointers, outputs];
    this.#tokens = tokens;
    this.#positions = positions;
    this.#sequences = sequences;
    this.#outputs = new Int8Array(koffi.view(outputs, size));
    this.struct = { n_tokens: 0, token, embd: null, pos, n_seq_id: counts, seq_id: pointers, logits: outputs };
  }

  /** Nothing may be done with it afterwards. */
  free(): void {
    for (const at of this.#memory) this.#koffi.free(at);
  }

  get length(): number {
    return this.#length;
  }

  clear(): void {
    this.#length = 0;
    this.struct.n_tokens = 0;
  }

  /** The token's index in the batch. */
  add(token: number, position: number, sequence: number, wantsLogits: boolean): number {
    const at = this.#length++;
    if (at >= this.#tokens.length) throw new RangeError("The batch is full.");
    this.#tokens[at] = token;
    this.#positions[at] = position;
    this.#sequences[at] = sequence;
    this.#outputs[at] = wantsLogits ? 1 : 0;
    this.struct.n_tokens = this.#length;
    return at;
  }
}
