import type koffi from "koffi";

export type Koffi = typeof koffi;
export type NativeType = ReturnType<Koffi["struct"]>;

/** An address in the process's memory; null: none. */
export type Pointer = bigint | null;

/** What a model is loaded with (llama.h, `llama_model_params`). */
export interface ModelParams {
  devices: Pointer;
  tensor_buft_overrides: Pointer;
  n_gpu_layers: number;
  split_mode: number;
  load_mode: number;
  lazy_mode: number;
  main_gpu: number;
  tensor_split: Pointer;
  progress_callback: Pointer;
  progress_callback_user_data: Pointer;
  kv_overrides: Pointer;
  vocab_only: boolean;
  check_tensors: boolean;
  use_extra_bufts: boolean;
  no_host: boolean;
  no_alloc: boolean;
  load_mtp: boolean;
}

/** What a context is made with (llama.h, `llama_context_params`). */
export interface ContextParams {
  n_ctx: number;
  n_batch: number;
  n_ubatch: number;
  n_seq_max: number;
  n_rs_seq: number;
  n_outputs_max: number;
  n_outputs_max_per_seq: number;
  n_threads: number;
  n_threads_batch: number;
  ctx_type: number;
  rope_scaling_type: number;
  pooling_type: number;
  attention_type: number;
  flash_attn_type: number;
  rope_freq_base: number;
  rope_freq_scale: number;
  yarn_ext_factor: number;
  yarn_attn_factor: number;
  yarn_beta_fast: number;
  yarn_beta_slow: number;
  yarn_orig_ctx: number;
  defrag_thold: number;
  cb_eval: Pointer;
  cb_eval_user_data: Pointer;
  type_k: number;
  type_v: number;
  abort_callback: Pointer;
  abort_callback_data: Pointer;
  embeddings: boolean;
  offload_kqv: boolean;
  no_perf: boolean;
  op_offload: boolean;
  swa_full: boolean;
  kv_unified: boolean;
  samplers: Pointer;
  n_samplers: number;
  ctx_other: Pointer;
}

/** What is to be evaluated (llama.h, `llama_batch`): pointers to arrays of `n_tokens` entries. */
export interface Batch {
  n_tokens: number;
  token: Pointer;
  embd: Pointer;
  pos: Pointer;
  n_seq_id: Pointer;
  seq_id: Pointer;
  logits: Pointer;
}

/** How threads compute (ggml.h, `ggml_threadpool_params`). */
export interface ThreadPoolParams {
  cpumask: Uint8Array;
  n_threads: number;
  prio: number;
  poll: number;
  strict_cpu: boolean;
  paused: boolean;
}

export interface Structs {
  readonly modelParams: NativeType;
  readonly contextParams: NativeType;
  readonly batch: NativeType;
  readonly chainParams: NativeType;
  readonly threadPoolParams: NativeType;
}

/**
 * The structures of llama.cpp v0.5.0 that are passed by value, in the order of their members there (include/llama.h and
 * ggml/include/ggml.h). `proveLayout` compares what the libraries read and write with them before anything else is done.
 */
export function declareStructs(koffi: Koffi): Structs {
  return {
    modelParams: koffi.struct({
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
    }),
    contextParams: koffi.struct({
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
    }),
    batch: koffi.struct({
      n_tokens: "int32_t",
      token: "void *",
      embd: "void *",
      pos: "void *",
      n_seq_id: "void *",
      seq_id: "void *",
      logits: "void *",
    }),
    chainParams: koffi.struct({ no_perf: "bool" }),
    threadPoolParams: koffi.struct({
      cpumask: koffi.array("uint8_t", 512),
      n_threads: "int32_t",
      prio: "int32_t",
      poll: "uint32_t",
      strict_cpu: "bool",
      paused: "bool",
    }),
  };
}
