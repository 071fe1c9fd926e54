import type { LoraAdapter } from "../../options.ts";
import type { AdapterScales } from "../adapter-scales.ts";
import type { NativeContext } from "./native-context.ts";
import type { NativeModel } from "./native-model.ts";

/** The LoRA adapters of a model, in the order of their ids. They are loaded before a context is made, which has room for them then. */
export class NativeAdapters {
  /** How much of each is used where nothing else is asked for. */
  readonly scales: readonly number[];
  readonly #model: NativeModel;
  readonly #pointers: bigint[] = [];
  /** What the context uses now. */
  #used: AdapterScales | undefined;

  /** Throws an Error of one sentence. */
  constructor(model: NativeModel, adapters: readonly LoraAdapter[]) {
    this.#model = model;
    this.scales = adapters.map(({ scale = 1 }) => scale);
    try {
      for (const { path } of adapters) this.#pointers.push(this.#load(path));
    } catch (error) {
      this.free();
      throw error;
    }
  }

  #load(path: string): bigint {
    const { api, pointer } = this.#model;
    api.takeComplaint();
    const adapter = api.llama_adapter_lora_init(pointer, path);
    if (adapter === null)
      throw new Error(`the adapter ${path} does not fit: ${api.takeComplaint() ?? "no reason given"}`);
    if (Number(api.llama_adapter_get_alora_n_invocation_tokens(adapter)) === 0) return adapter;
    api.llama_adapter_lora_free(adapter);
    throw new Error(`the adapter ${path} is one that certain tokens activate, which cannot be used here`);
  }

  /** From the next pass on, so much of each is used. */
  use(context: NativeContext, scales: AdapterScales): void {
    if (scales === this.#used) return;
    const pointers = BigUint64Array.from(this.#pointers);
    this.#model.api.llama_set_adapters_lora(
      context.pointer,
      pointers,
      pointers.length,
      Float32Array.from(scales.split(","), Number),
    );
    this.#used = scales;
  }

  free(): void {
    for (const pointer of this.#pointers.splice(0)) this.#model.api.llama_adapter_lora_free(pointer);
  }
}
