import type { BaseFunctions, LlamaFunctions } from "./functions.ts";
import type { ContextParams, ModelParams, ThreadPoolParams } from "./structs.ts";

/** The version whose structures are declared. */
const version = /^0\.5\.0(?:$|[^\d])/;

/** What llama.cpp v0.5.0 sets where nothing is asked for (`llama_model_default_params`). */
const modelDefaults: ModelParams = {
  devices: null,
  tensor_buft_overrides: null,
  n_gpu_layers: -1,
  split_mode: 1,
  load_mode: -1,
  lazy_mode: 1,
  main_gpu: 0,
  tensor_split: null,
  progress_callback: null,
  progress_callback_user_data: null,
  kv_overrides: null,
  vocab_only: false,
  check_tensors: false,
  use_extra_bufts: true,
  no_host: false,
  no_alloc: false,
  load_mtp: false,
};

/** The same of a context (`llama_context_default_params`). */
const contextDefaults: ContextParams = {
  n_ctx: 512,
  n_batch: 2048,
  n_ubatch: 512,
  n_seq_max: 1,
  n_rs_seq: 0,
  n_outputs_max: 0,
  n_outputs_max_per_seq: 1,
  n_threads: 4,
  n_threads_batch: 4,
  ctx_type: 0,
  rope_scaling_type: -1,
  pooling_type: -1,
  attention_type: -1,
  flash_attn_type: -1,
  rope_freq_base: 0,
  rope_freq_scale: 0,
  yarn_ext_factor: -1,
  yarn_attn_factor: -1,
  yarn_beta_fast: -1,
  yarn_beta_slow: -1,
  yarn_orig_ctx: 0,
  defrag_thold: -1,
  cb_eval: null,
  cb_eval_user_data: null,
  type_k: 1,
  type_v: 1,
  abort_callback: null,
  abort_callback_data: null,
  embeddings: false,
  offload_kqv: true,
  no_perf: true,
  op_offload: true,
  swa_full: true,
  kv_unified: false,
  samplers: null,
  n_samplers: 0,
  ctx_other: null,
};

/** Of a pool of three threads (`ggml_threadpool_params_default`). */
const poolDefaults: Omit<ThreadPoolParams, "cpumask"> = {
  n_threads: 3,
  prio: 0,
  poll: 50,
  strict_cpu: false,
  paused: false,
};

/**
 * Compares the structures that the libraries fill in with what this version of them is known to set: a member that stood elsewhere, or
 * had another size, would be read as something else. Throws an Error with one sentence.
 */
export function proveLayout(api: LlamaFunctions & BaseFunctions): void {
  const found = api.llama_version();
  if (!version.test(found)) throw new Error(`the libraries are llama.cpp ${found}, and 0.5.0 is needed`);
  compare("llama_model_params", modelDefaults, api.llama_model_default_params());
  compare("llama_context_params", contextDefaults, api.llama_context_default_params());
  compare("ggml_threadpool_params", poolDefaults, api.ggml_threadpool_params_default(3));
  if (Number(api.llama_max_parallel_sequences()) !== 256)
    throw new Error("the libraries are laid out in another way than llama.cpp 0.5.0 (llama_max_parallel_sequences)");
}

function compare<T extends object>(name: string, expected: T, found: T): void {
  for (const [member, value] of Object.entries(expected)) {
    const read = (found as Readonly<Record<string, unknown>>)[member];
    // 64-bit numbers come as either.
    if (read === value || (typeof read === "bigint" && Number(read) === value)) continue;
    throw new Error(
      `the libraries are laid out in another way than llama.cpp 0.5.0: ${name}.${member} is ${String(read)} in place of ${String(value)}`,
    );
  }
}
