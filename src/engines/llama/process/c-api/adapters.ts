import { invalidRequest } from "../../../../wire/core/failure.ts";
import type { Sampling } from "../../../../wire/core/request.ts";
import type { LoraAdapter } from "../../options.ts";
import type { NativeContext } from "./native-context.ts";
import type { NativeModel } from "./native-model.ts";

/**
 * The scale of each of a model's LoRA adapters, in the order of their ids, as text: "1,0.5"; "" for a model without adapters. Tokens that
 * were decoded with other scales cannot be reused, and cannot be decoded in the same batch.
 */
export type AdapterScales = string;

/**
 * The scales that a request asks for; by default `own`. Adapters that the request does not name are not used, as in llama.cpp's server.
 * Throws FailureError for an unknown id.
 */
export function requestedScales(requested: Sampling["adapters"], own: readonly number[]): AdapterScales {
  if (requested === undefined) return own.join();
  const scales = own.map(() => 0);
  for (const [at, { id, scale }] of requested.entries()) {
    if (id < scales.length) scales[id] = scale;
    else
      throw invalidRequest(
        `Invalid value for 'lora[${at}].id': the model has ${scales.length} adapters, which are numbered from 0.`,
        `lora[${at}].id`,
        "invalid_value",
      );
  }
  return scales.join();
}

/** Slots with different adapters cannot be decoded in one batch: those with the same adapters take turns. */
export class AdapterRotation {
  #last: AdapterScales = "";

  /** The slots that are decoded next. */
  next<T>(all: readonly T[], adaptersOf: (one: T) => AdapterScales): readonly T[] {
    const kinds = [...new Set(all.map(adaptersOf))];
    const turn = kinds[(kinds.indexOf(this.#last) + 1) % kinds.length] ?? "";
    this.#last = turn;
    return kinds.length === 1 ? all : all.filter((one) => adaptersOf(one) === turn);
  }
}

/**
 * The LoRA adapters of a model, in the order of their ids. They must be loaded before a context is created, which reserves memory for
 * them.
 */
export class NativeAdapters {
  /** The scale of each adapter for requests that do not set one. */
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
    api.takeError();
    const adapter = api.llama_adapter_lora_init(pointer, path);
    if (adapter === null) throw new Error(`the adapter ${path} does not fit: ${api.takeError() ?? "no reason given"}`);
    if (Number(api.llama_adapter_get_alora_n_invocation_tokens(adapter)) === 0) return adapter;
    api.llama_adapter_lora_free(adapter);
    throw new Error(`the adapter ${path} is one that certain tokens activate, which cannot be used here`);
  }

  /** Uses these scales from the next decode on. */
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
