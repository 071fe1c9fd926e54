import type { GpuSplit } from "../../options.ts";
import type { LlamaApi } from "./llama-api.ts";
import type { ModelParams, Pointer } from "./structs.ts";

export interface Placement {
  /** Layers on a GPU; −1: all; 0: no GPU is used at all. */
  readonly gpuLayers: number;
  /** How several GPUs share them. */
  readonly split?: GpuSplit;
}

/** llama.h, `llama_split_mode`. */
const splitModes = { none: 0, layer: 1, row: 2, tensor: 3 } as const;

/**
 * The parameters that put a model where it is asked to be, until `free`: llama.cpp copies what it needs of them. Throws an Error of one
 * sentence where more GPUs are named than llama.cpp knows of.
 */
export function placed(
  api: LlamaApi,
  { gpuLayers, split = {} }: Placement,
): { readonly params: ModelParams; readonly free: () => void } {
  const params = { ...api.llama_model_default_params(), n_gpu_layers: gpuLayers };
  if (gpuLayers === 0) {
    // null: all that there are. And of none, nothing can be divided.
    const none = emptyList(api.koffi);
    return { params: { ...params, devices: none }, free: () => api.koffi.free(none) };
  }
  const shares = split.shares && sharesOf(api, split.shares);
  return {
    params: {
      ...params,
      ...(split.mode !== undefined && { split_mode: splitModes[split.mode] }),
      ...(split.mainGpu !== undefined && { main_gpu: split.mainGpu }),
      ...(shares !== undefined && { tensor_split: shares }),
    },
    free: () => {
      if (shares !== undefined) api.koffi.free(shares);
    },
  };
}

/** A list of pointers that ends where it begins. */
function emptyList(koffi: LlamaApi["koffi"]): Pointer {
  const at = koffi.alloc("void *", 1) as bigint;
  new BigUint64Array(koffi.view(at, 8))[0] = 0n;
  return at;
}

/** A number for each GPU that there could be; those that are not named get nothing. */
function sharesOf({ koffi, llama_max_devices: maxDevices }: LlamaApi, shares: readonly number[]): bigint {
  const most = Number(maxDevices());
  if (shares.length > most)
    throw new Error(`its tensorSplit has ${shares.length} numbers, but there can be ${most} GPUs at most`);
  const at = koffi.alloc("float", most) as bigint;
  const numbers = new Float32Array(koffi.view(at, most * 4));
  numbers.fill(0);
  numbers.set(shares);
  return at;
}
