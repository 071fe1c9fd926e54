import { invalidRequest } from "../../../../core/failure.ts";
import type { Sampling } from "../../../../core/request.ts";
import type { LoraAdapter } from "../../options.ts";
import type { NativeContext } from "./native-context.ts";
import type { NativeModel } from "./native-model.ts";

/**
 * How much of each of a model's adapters is used, by their ids, as a text: "1,0.5"; "" for a model without adapters. What was evaluated
 * with other adapters is of no use, and cannot be evaluated in the same pass.
 */
export type AdapterScales = string;

/**
 * What a request asks for; `own` is used where it does not say. Adapters that it does not name are not used, as in llama.cpp's server.
 * Throws FailureError.
 */
export function requestedScales(asked: Sampling["adapters"], own: readonly number[]): AdapterScales {
  if (asked === undefined) return own.join();
  const scales = own.map(() => 0);
  for (const [at, { id, scale }] of asked.entries()) {
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

/** Choices with different adapters cannot be evaluated in one pass: those with the same ones take turns. */
export class AdapterRotation {
  #last: AdapterScales = "";

  /** Those whose turn it is. */
  next<T>(all: readonly T[], adaptersOf: (one: T) => AdapterScales): readonly T[] {
    const kinds = [...new Set(all.map(adaptersOf))];
    const turn = kinds[(kinds.indexOf(this.#last) + 1) % kinds.length] ?? "";
    this.#last = turn;
    return kinds.length === 1 ? all : all.filter((one) => adaptersOf(one) === turn);
  }
}

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
    api.takeError();
    const adapter = api.llama_adapter_lora_init(pointer, path);
    if (adapter === null) throw new Error(`the adapter ${path} does not fit: ${api.takeError() ?? "no reason given"}`);
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
