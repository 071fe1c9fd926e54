import type { LlamaApi } from "./llama-api.ts";
import type { Pointer } from "./structs.ts";

/** Bytes of a `ggml_tensor` up to the end of its sizes, and where those begin (ggml.h). */
const tensor = { bytes: 64, sizes: 16, dimensions: 4 } as const;

/**
 * Ends a pass that is under way. llama.cpp asks a function whether to go on, in the thread that computes, where no JavaScript can run.
 * So it is given one of its own, `ggml_is_empty`, with the sizes of a tensor that is not there: it says `true` as soon as one of them
 * is 0.
 */
export class AbortFlag {
  readonly callback: Pointer;
  readonly data: Pointer;
  readonly #koffi: LlamaApi["koffi"];
  readonly #sizes: BigInt64Array;

  constructor({ koffi, isEmpty }: LlamaApi) {
    this.#koffi = koffi;
    const at = koffi.alloc("uint8_t", tensor.bytes) as bigint;
    this.callback = isEmpty;
    this.data = at;
    this.#sizes = new BigInt64Array(koffi.view(at + BigInt(tensor.sizes), tensor.dimensions * 8));
    this.lower();
  }

  /** Nothing may be done with it afterwards. */
  free(): void {
    this.#koffi.free(this.data);
  }

  raise(): void {
    this.#sizes[0] = 0n;
  }

  lower(): void {
    this.#sizes.fill(1n);
  }
}
