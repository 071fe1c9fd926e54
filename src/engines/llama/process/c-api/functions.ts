import type { Batch, ContextParams, ModelParams, NativeType, Pointer, Structs, ThreadPoolParams } from "./structs.ts";

/** Parameters and result of a function, as koffi is told them. */
type Declaration = readonly [result: string | NativeType, parameters: readonly (string | NativeType)[]];

const pointer = "void *";

/** The functions of libllama that are used. */
export function llamaDeclarations(structs: Structs): Record<keyof LlamaFunctions, Declaration> {
  const { modelParams, contextParams, batch, chainParams } = structs;
  return {
    llama_version: ["str", []],
    llama_backend_init: ["void", []],
    llama_log_set: ["void", [pointer, pointer]],
    llama_max_parallel_sequences: ["size_t", []],
    llama_max_devices: ["size_t", []],
    llama_supports_gpu_offload: ["bool", []],
    llama_model_default_params: [modelParams, []],
    llama_context_default_params: [contextParams, []],
    llama_model_load_from_file: [pointer, ["str", modelParams]],
    llama_model_free: ["void", [pointer]],
    llama_model_get_vocab: [pointer, [pointer]],
    llama_model_meta_val_str: ["int32_t", [pointer, "str", pointer, "size_t"]],
    llama_model_chat_template: ["str", [pointer, "str"]],
    llama_model_n_ctx_train: ["int32_t", [pointer]],
    llama_model_n_layer: ["int32_t", [pointer]],
    llama_model_n_swa: ["int32_t", [pointer]],
    llama_model_n_embd_out: ["int32_t", [pointer]],
    llama_model_size: ["uint64_t", [pointer]],
    llama_model_is_recurrent: ["bool", [pointer]],
    llama_model_is_hybrid: ["bool", [pointer]],
    llama_model_has_encoder: ["bool", [pointer]],
    llama_model_has_decoder: ["bool", [pointer]],
    llama_adapter_lora_init: [pointer, [pointer, "str"]],
    llama_adapter_lora_free: ["void", [pointer]],
    llama_adapter_get_alora_n_invocation_tokens: ["uint64_t", [pointer]],
    llama_set_adapters_lora: ["int32_t", [pointer, pointer, "size_t", pointer]],
    llama_init_from_model: [pointer, [pointer, contextParams]],
    llama_free: ["void", [pointer]],
    llama_n_ctx: ["uint32_t", [pointer]],
    llama_get_memory: [pointer, [pointer]],
    llama_memory_clear: ["void", [pointer, "bool"]],
    llama_memory_seq_rm: ["bool", [pointer, "int32_t", "int32_t", "int32_t"]],
    llama_memory_seq_cp: ["void", [pointer, "int32_t", "int32_t", "int32_t", "int32_t"]],
    llama_memory_seq_pos_min: ["int32_t", [pointer, "int32_t"]],
    llama_memory_seq_pos_max: ["int32_t", [pointer, "int32_t"]],
    llama_state_seq_get_size_ext: ["size_t", [pointer, "int32_t", "uint32_t"]],
    llama_state_seq_get_data_ext: ["size_t", [pointer, pointer, "size_t", "int32_t", "uint32_t"]],
    llama_state_seq_set_data_ext: ["size_t", [pointer, pointer, "size_t", "int32_t", "uint32_t"]],
    llama_decode: ["int32_t", [pointer, batch]],
    llama_encode: ["int32_t", [pointer, batch]],
    llama_pooling_type: ["int32_t", [pointer]],
    llama_get_embeddings_seq: [pointer, [pointer, "int32_t"]],
    llama_synchronize: ["void", [pointer]],
    llama_get_logits_ith: [pointer, [pointer, "int32_t"]],
    llama_set_abort_callback: ["void", [pointer, pointer, pointer]],
    llama_attach_threadpool: ["void", [pointer, pointer, pointer]],
    llama_vocab_n_tokens: ["int32_t", [pointer]],
    llama_vocab_get_text: ["str", [pointer, "int32_t"]],
    llama_vocab_get_attr: ["int32_t", [pointer, "int32_t"]],
    llama_vocab_is_eog: ["bool", [pointer, "int32_t"]],
    llama_vocab_bos: ["int32_t", [pointer]],
    llama_vocab_eos: ["int32_t", [pointer]],
    llama_vocab_eot: ["int32_t", [pointer]],
    llama_vocab_sep: ["int32_t", [pointer]],
    llama_vocab_fim_pre: ["int32_t", [pointer]],
    llama_vocab_fim_suf: ["int32_t", [pointer]],
    llama_vocab_fim_mid: ["int32_t", [pointer]],
    llama_vocab_get_add_bos: ["bool", [pointer]],
    llama_vocab_get_add_eos: ["bool", [pointer]],
    llama_vocab_get_add_sep: ["bool", [pointer]],
    llama_tokenize: ["int32_t", [pointer, pointer, "int32_t", pointer, "int32_t", "bool", "bool"]],
    llama_token_to_piece: ["int32_t", [pointer, "int32_t", pointer, "int32_t", "int32_t", "bool"]],
    llama_sampler_chain_default_params: [chainParams, []],
    llama_sampler_chain_init: [pointer, [chainParams]],
    llama_sampler_chain_add: ["void", [pointer, pointer]],
    llama_sampler_init_greedy: [pointer, []],
    llama_sampler_init_dist: [pointer, ["uint32_t"]],
    llama_sampler_init_top_k: [pointer, ["int32_t"]],
    llama_sampler_init_top_p: [pointer, ["float", "size_t"]],
    llama_sampler_init_min_p: [pointer, ["float", "size_t"]],
    llama_sampler_init_xtc: [pointer, ["float", "float", "size_t", "uint32_t"]],
    llama_sampler_init_temp: [pointer, ["float"]],
    llama_sampler_init_dry: [pointer, [pointer, "float", "float", "int32_t", "int32_t", "str *", "size_t"]],
    llama_sampler_init_grammar: [pointer, [pointer, "str", "str"]],
    llama_sampler_clone: [pointer, [pointer]],
    llama_sampler_free: ["void", [pointer]],
    llama_sampler_accept: ["void", [pointer, "int32_t"]],
    llama_sampler_apply: ["void", [pointer, pointer]],
    llama_sampler_sample: ["int32_t", [pointer, pointer, "int32_t"]],
  };
}

/** The functions of libggml, which knows the backends (processor, GPU). */
export const ggmlDeclarations: Record<keyof GgmlFunctions, Declaration> = {
  ggml_backend_load_all_from_path: ["void", ["str"]],
  ggml_backend_dev_by_type: [pointer, ["int32_t"]],
};

/** The functions of libggml-base. */
export function baseDeclarations({ threadPoolParams }: Structs): Record<keyof BaseFunctions, Declaration> {
  return {
    ggml_backend_dev_backend_reg: [pointer, [pointer]],
    ggml_backend_reg_get_proc_address: [pointer, [pointer, "str"]],
    ggml_threadpool_params_default: [threadPoolParams, ["int32_t"]],
  };
}

/** What `llama_tokenize` is asked. */
type Tokenizing = [
  vocab: Pointer,
  text: Uint8Array,
  length: number,
  tokens: Int32Array,
  most: number,
  addSpecial: boolean,
  parseSpecial: boolean,
];

/** Evaluates a batch. */
interface Pass {
  (context: Pointer, batch: Batch): number;
  /** In another thread. */
  async(context: Pointer, batch: Batch, done: (error: unknown, result: number) => void): void;
}

export interface LlamaFunctions {
  llama_version(): string;
  llama_backend_init(): void;
  llama_log_set(callback: Pointer, data: Pointer): void;
  llama_max_parallel_sequences(): number;
  llama_max_devices(): number;
  llama_supports_gpu_offload(): boolean;
  llama_model_default_params(): ModelParams;
  llama_context_default_params(): ContextParams;
  llama_model_load_from_file(path: string, params: ModelParams): Pointer;
  llama_model_free(model: Pointer): void;
  llama_model_get_vocab(model: Pointer): Pointer;
  llama_model_meta_val_str(model: Pointer, key: string, to: Uint8Array | null, size: number): number;
  llama_model_chat_template(model: Pointer, name: string | null): string | null;
  llama_model_n_ctx_train(model: Pointer): number;
  llama_model_n_layer(model: Pointer): number;
  llama_model_n_swa(model: Pointer): number;
  llama_model_n_embd_out(model: Pointer): number;
  llama_model_size(model: Pointer): number;
  llama_model_is_recurrent(model: Pointer): boolean;
  llama_model_is_hybrid(model: Pointer): boolean;
  llama_model_has_encoder(model: Pointer): boolean;
  llama_model_has_decoder(model: Pointer): boolean;
  llama_adapter_lora_init(model: Pointer, path: string): bigint | null;
  llama_adapter_lora_free(adapter: Pointer): void;
  llama_adapter_get_alora_n_invocation_tokens(adapter: Pointer): number;
  llama_set_adapters_lora(context: Pointer, adapters: BigUint64Array, count: number, scales: Float32Array): number;
  llama_init_from_model(model: Pointer, params: ContextParams): Pointer;
  llama_free(context: Pointer): void;
  llama_n_ctx(context: Pointer): number;
  llama_get_memory(context: Pointer): Pointer;
  llama_memory_clear(memory: Pointer, data: boolean): void;
  llama_memory_seq_rm(memory: Pointer, sequence: number, from: number, to: number): boolean;
  llama_memory_seq_cp(memory: Pointer, from: number, to: number, start: number, end: number): void;
  llama_memory_seq_pos_min(memory: Pointer, sequence: number): number;
  llama_memory_seq_pos_max(memory: Pointer, sequence: number): number;
  llama_state_seq_get_size_ext(context: Pointer, sequence: number, flags: number): number;
  llama_state_seq_get_data_ext(context: Pointer, to: Uint8Array, size: number, sequence: number, flags: number): number;
  llama_state_seq_set_data_ext(
    context: Pointer,
    from: Uint8Array,
    size: number,
    sequence: number,
    flags: number,
  ): number;
  llama_decode: Pass;
  llama_encode: Pass;
  llama_pooling_type(context: Pointer): number;
  llama_get_embeddings_seq(context: Pointer, sequence: number): Pointer;
  llama_synchronize(context: Pointer): void;
  llama_get_logits_ith(context: Pointer, index: number): Pointer;
  llama_set_abort_callback(context: Pointer, callback: Pointer, data: Pointer): void;
  llama_attach_threadpool(context: Pointer, pool: Pointer, batchPool: Pointer): void;
  llama_vocab_n_tokens(vocab: Pointer): number;
  llama_vocab_get_text(vocab: Pointer, token: number): string;
  llama_vocab_get_attr(vocab: Pointer, token: number): number;
  llama_vocab_is_eog(vocab: Pointer, token: number): boolean;
  llama_vocab_bos(vocab: Pointer): number;
  llama_vocab_eos(vocab: Pointer): number;
  llama_vocab_eot(vocab: Pointer): number;
  llama_vocab_sep(vocab: Pointer): number;
  llama_vocab_fim_pre(vocab: Pointer): number;
  llama_vocab_fim_suf(vocab: Pointer): number;
  llama_vocab_fim_mid(vocab: Pointer): number;
  llama_vocab_get_add_bos(vocab: Pointer): boolean;
  llama_vocab_get_add_eos(vocab: Pointer): boolean;
  llama_vocab_get_add_sep(vocab: Pointer): boolean;
  llama_tokenize: {
    (...asked: Tokenizing): number;
    /** In another thread. */
    async(...asked: [...Tokenizing, done: (error: unknown, result: number) => void]): void;
  };
  llama_token_to_piece(
    vocab: Pointer,
    token: number,
    to: Uint8Array,
    size: number,
    leftStrip: number,
    special: boolean,
  ): number;
  llama_sampler_chain_default_params(): { no_perf: boolean };
  llama_sampler_chain_init(params: { no_perf: boolean }): Pointer;
  llama_sampler_chain_add(chain: Pointer, sampler: Pointer): void;
  llama_sampler_init_greedy(): Pointer;
  llama_sampler_init_dist(seed: number): Pointer;
  llama_sampler_init_top_k(k: number): Pointer;
  llama_sampler_init_top_p(p: number, keep: number): Pointer;
  llama_sampler_init_min_p(p: number, keep: number): Pointer;
  llama_sampler_init_xtc(probability: number, threshold: number, keep: number, seed: number): Pointer;
  llama_sampler_init_temp(temperature: number): Pointer;
  llama_sampler_init_dry(
    vocab: Pointer,
    multiplier: number,
    base: number,
    allowedLength: number,
    lastN: number,
    breakers: readonly string[],
    count: number,
  ): Pointer;
  llama_sampler_init_grammar(vocab: Pointer, gbnf: string, root: string): Pointer;
  llama_sampler_clone(sampler: Pointer): Pointer;
  llama_sampler_free(sampler: Pointer): void;
  llama_sampler_accept(sampler: Pointer, token: number): void;
  llama_sampler_apply(sampler: Pointer, candidates: Pointer): void;
  llama_sampler_sample(sampler: Pointer, context: Pointer, index: number): number;
}

export interface GgmlFunctions {
  ggml_backend_load_all_from_path(folder: string): void;
  ggml_backend_dev_by_type(type: number): Pointer;
}

export interface BaseFunctions {
  ggml_backend_dev_backend_reg(device: Pointer): Pointer;
  ggml_backend_reg_get_proc_address(registry: Pointer, name: string): Pointer;
  ggml_threadpool_params_default(threads: number): ThreadPoolParams;
}
