import type {
  BatchStruct,
  ChainParams,
  ContextParams,
  ModelParams,
  NativeType,
  Pointer,
  Structs,
  ThreadPoolParams,
} from "./structs.ts";

/** The C types of parameters and results: koffi's names, those of the structures, and `str?` for a string that may be NULL. */
interface NativeTypes extends Record<keyof Structs, object> {
  void: void;
  bool: boolean;
  int32_t: number;
  uint32_t: number;
  /** May be a `bigint` where it is a result. */
  size_t: number;
  uint64_t: number;
  float: number;
  str: string;
  "str?": string | null;
  "str *": readonly string[];
  "void *": Pointer;
  modelParams: ModelParams;
  contextParams: ContextParams;
  batch: BatchStruct;
  chainParams: ChainParams;
  threadPoolParams: ThreadPoolParams;
}

type TypeName = keyof NativeTypes;
type Declaration = readonly [result: TypeName, parameters: readonly TypeName[]];

/** An array may be passed where a pointer is expected. */
type Parameter<Name extends TypeName> = Name extends "void *" ? Pointer | ArrayBufferView : NativeTypes[Name];
type ParametersOf<Names extends readonly TypeName[]> = { -readonly [At in keyof Names]: Parameter<Names[At]> };

type Functions<Declarations extends Record<string, Declaration>> = {
  [Name in keyof Declarations]: (
    ...parameters: ParametersOf<Declarations[Name][1]>
  ) => NativeTypes[Declarations[Name][0]];
};

/** Functions that are also called in another thread. */
type AsyncFunctions<Declarations extends Record<string, Declaration>, Names extends keyof Declarations> = {
  [Name in Names]: {
    async(
      ...parameters: [
        ...ParametersOf<Declarations[Name][1]>,
        done: (error: unknown, result: NativeTypes[Declarations[Name][0]]) => void,
      ]
    ): void;
  };
};

const pointer = "void *";

/** The functions of libllama that are used (include/llama.h). */
export const llamaDeclarations = {
  llama_version: ["str", []],
  llama_backend_init: ["void", []],
  llama_log_set: ["void", [pointer, pointer]],
  llama_max_parallel_sequences: ["size_t", []],
  llama_max_devices: ["size_t", []],
  llama_supports_gpu_offload: ["bool", []],
  llama_model_default_params: ["modelParams", []],
  llama_context_default_params: ["contextParams", []],
  llama_model_load_from_file: [pointer, ["str", "modelParams"]],
  llama_model_free: ["void", [pointer]],
  llama_model_get_vocab: [pointer, [pointer]],
  llama_model_meta_val_str: ["int32_t", [pointer, "str", pointer, "size_t"]],
  llama_model_chat_template: ["str?", [pointer, "str?"]],
  llama_model_n_swa: ["int32_t", [pointer]],
  llama_model_n_embd_out: ["int32_t", [pointer]],
  llama_model_n_embd_inp: ["int32_t", [pointer]],
  llama_model_size: ["uint64_t", [pointer]],
  llama_model_is_recurrent: ["bool", [pointer]],
  llama_model_is_hybrid: ["bool", [pointer]],
  llama_model_has_encoder: ["bool", [pointer]],
  llama_model_has_decoder: ["bool", [pointer]],
  llama_adapter_lora_init: [pointer, [pointer, "str"]],
  llama_adapter_lora_free: ["void", [pointer]],
  llama_adapter_get_alora_n_invocation_tokens: ["uint64_t", [pointer]],
  llama_set_adapters_lora: ["int32_t", [pointer, pointer, "size_t", pointer]],
  llama_init_from_model: [pointer, [pointer, "contextParams"]],
  llama_free: ["void", [pointer]],
  llama_n_ctx: ["uint32_t", [pointer]],
  llama_n_rs_seq: ["uint32_t", [pointer]],
  llama_get_memory: [pointer, [pointer]],
  llama_memory_clear: ["void", [pointer, "bool"]],
  llama_memory_seq_rm: ["bool", [pointer, "int32_t", "int32_t", "int32_t"]],
  llama_memory_seq_cp: ["void", [pointer, "int32_t", "int32_t", "int32_t", "int32_t"]],
  llama_memory_seq_pos_min: ["int32_t", [pointer, "int32_t"]],
  llama_memory_seq_pos_max: ["int32_t", [pointer, "int32_t"]],
  llama_state_seq_get_size_ext: ["size_t", [pointer, "int32_t", "uint32_t"]],
  llama_state_seq_get_data_ext: ["size_t", [pointer, pointer, "size_t", "int32_t", "uint32_t"]],
  llama_state_seq_set_data_ext: ["size_t", [pointer, pointer, "size_t", "int32_t", "uint32_t"]],
  llama_set_causal_attn: ["void", [pointer, "bool"]],
  llama_decode: ["int32_t", [pointer, "batch"]],
  llama_encode: ["int32_t", [pointer, "batch"]],
  llama_pooling_type: ["int32_t", [pointer]],
  llama_get_embeddings_seq: [pointer, [pointer, "int32_t"]],
  llama_get_logits_ith: [pointer, [pointer, "int32_t"]],
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
  llama_sampler_chain_default_params: ["chainParams", []],
  llama_sampler_chain_init: [pointer, ["chainParams"]],
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
  llama_sampler_free: ["void", [pointer]],
  llama_sampler_accept: ["void", [pointer, "int32_t"]],
  llama_sampler_apply: ["void", [pointer, pointer]],
  llama_sampler_sample: ["int32_t", [pointer, pointer, "int32_t"]],
} as const satisfies Record<string, Declaration>;

/** The functions of libggml, which loads the backends (CPU, GPU). */
export const ggmlDeclarations = {
  ggml_backend_load_all_from_path: ["void", ["str"]],
  ggml_backend_dev_by_type: [pointer, ["int32_t"]],
} as const satisfies Record<string, Declaration>;

/** The functions of libggml-base. */
export const baseDeclarations = {
  ggml_backend_dev_description: ["str", [pointer]],
  ggml_backend_dev_backend_reg: [pointer, [pointer]],
  ggml_backend_reg_get_proc_address: [pointer, [pointer, "str"]],
  ggml_threadpool_params_default: ["threadPoolParams", ["int32_t"]],
} as const satisfies Record<string, Declaration>;

export type LlamaFunctions = Functions<typeof llamaDeclarations> &
  AsyncFunctions<typeof llamaDeclarations, "llama_decode" | "llama_encode" | "llama_tokenize">;
export type GgmlFunctions = Functions<typeof ggmlDeclarations>;
export type BaseFunctions = Functions<typeof baseDeclarations>;

/** The type as koffi declares it. */
export function koffiType(name: TypeName, structs: Structs): string | NativeType {
  if (name === "str?") return "str";
  return name in structs ? structs[name as keyof Structs] : name;
}

export type NativeDeclarations = Readonly<Record<string, Declaration>>;
