import type koffi from "koffi";

export type Koffi = typeof koffi;
export type NativeType = ReturnType<Koffi["struct"]>;

/** An address in the process's memory; `null` for NULL. */
export type Pointer = bigint | null;

/** The TypeScript type of a structure's members. 64-bit numbers are read as `number` or `bigint`. */
type Members<Struct> = {
  -readonly [Name in keyof Struct]: Struct[Name] extends "void *"
    ? Pointer
    : Struct[Name] extends "bool"
      ? boolean
      : number;
};

/*
 * The structures of llama.cpp v0.5.0 that are passed by value, with their members in order (include/llama.h, ggml/include/ggml.h).
 * `checkLayout` compares what the libraries read and write with these declarations before they are used.
 */

/** `llama_model_params`. */
const modelParams = {
  devices: "void *",
  tensor_buft_overrides: "void *",
  n_gpu_layers: "int32_t",
  split_mode: "int32_t",
  load_mode: "int32_t",
  lazy_mode: "int32_t",
  main_gpu: "int32_t",
  tensor_split: "void *",
  progress_callback: "void *",
  progress_callback_user_data: "void *",
  kv_overrides: "void *",
  vocab_only: "bool",
  check_tensors: "bool",
  use_extra_bufts: "bool",
  no_host: "bool",
  no_alloc: "bool",
  load_mtp: "bool",
} as const;

/** `llama_context_params`. */
const contextParams = {
  n_ctx: "uint32_t",
  n_batch: "uint32_t",
  n_ubatch: "uint32_t",
  n_seq_max: "uint32_t",
  n_rs_seq: "uint32_t",
  n_outputs_max: "uint32_t",
  n_outputs_max_per_seq: "uint32_t",
  n_threads: "int32_t",
  n_threads_batch: "int32_t",
  ctx_type: "int32_t",
  rope_scaling_type: "int32_t",
  pooling_type: "int32_t",
  attention_type: "int32_t",
  flash_attn_type: "int32_t",
  rope_freq_base: "float",
  rope_freq_scale: "float",
  yarn_ext_factor: "float",
  yarn_attn_factor: "float",
  yarn_beta_fast: "float",
  yarn_beta_slow: "float",
  yarn_orig_ctx: "uint32_t",
  defrag_thold: "float",
  cb_eval: "void *",
  cb_eval_user_data: "void *",
  type_k: "int32_t",
  type_v: "int32_t",
  abort_callback: "void *",
  abort_callback_data: "void *",
  embeddings: "bool",
  offload_kqv: "bool",
  no_perf: "bool",
  op_offload: "bool",
  swa_full: "bool",
  kv_unified: "bool",
  samplers: "void *",
  n_samplers: "size_t",
  ctx_other: "void *",
} as const;

/** `llama_batch`: pointers to arrays of `n_tokens` entries. */
const batch = {
  n_tokens: "int32_t",
  token: "void *",
  embd: "void *",
  pos: "void *",
  n_seq_id: "void *",
  seq_id: "void *",
  logits: "void *",
} as const;

/** `llama_sampler_chain_params`. */
const chainParams = { no_perf: "bool" } as const;

/** `ggml_threadpool_params`, whose first member is an array. */
const threadPoolParams = {
  n_threads: "int32_t",
  prio: "int32_t",
  poll: "uint32_t",
  strict_cpu: "bool",
  paused: "bool",
} as const;

export type ModelParams = Members<typeof modelParams>;
export type ContextParams = Members<typeof contextParams>;
export type BatchStruct = Members<typeof batch>;
export type ChainParams = Members<typeof chainParams>;
export type ThreadPoolParams = Members<typeof threadPoolParams> & { cpumask: Uint8Array };

export interface Structs {
  readonly modelParams: NativeType;
  readonly contextParams: NativeType;
  readonly batch: NativeType;
  readonly chainParams: NativeType;
  readonly threadPoolParams: NativeType;
}

/** Declares the structures to koffi. */
export function declareStructs(koffi: Koffi): Structs {
  return {
    modelParams: koffi.struct(modelParams),
    contextParams: koffi.struct(contextParams),
    batch: koffi.struct(batch),
    chainParams: koffi.struct(chainParams),
    threadPoolParams: koffi.struct({ cpumask: koffi.array("uint8_t", 512), ...threadPoolParams }),
  };
}
