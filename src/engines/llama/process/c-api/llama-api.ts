import type { LogListener } from "../../../../wire/core/generation-observer.ts";
import { libraryFile, type LibraryFolder } from "../../libraries/library-folders.ts";
import {
  baseDeclarations,
  ggmlDeclarations,
  koffiType,
  llamaDeclarations,
  type BaseFunctions,
  type GgmlFunctions,
  type LlamaFunctions,
  type NativeDeclarations,
} from "./functions.ts";
import {
  declareStructs,
  type Koffi,
  type Pointer,
  type Structs,
  type ContextParams,
  type ModelParams,
  type ThreadPoolParams,
} from "./structs.ts";

/** llama.cpp's C API, from prebuilt libraries. There is one for each process. */
export interface LlamaApi extends LlamaFunctions, GgmlFunctions, BaseFunctions {
  readonly koffi: Koffi;
  readonly structs: Structs;
  /** `ggml_is_empty`, the abort callback: see `AbortFlag`. */
  readonly isEmpty: Pointer;
  /** The first error that llama.cpp has logged since the last call; `null` if there is none. */
  takeError(): string | null;
  /** Whether the model that was loaded last, or is being loaded, has weights in another layout than its file (ggml: extra buffer types). */
  repacksWeights(): boolean;
  /** The name of the GPU that is used; `null` if there is none. */
  gpuName(): string | null;
  /** How many layers of the model that was loaded last are on a GPU, of how many. */
  offloaded(): { readonly layers: number; readonly all: number };
}

const stackBytes = 8 * 2 ** 20;

/** ggml-backend.h, `GGML_BACKEND_DEVICE_TYPE_CPU`, `…_GPU`, and `…_IGPU`, a GPU that uses main memory. */
const cpuDevice = 0;
const gpuDevices = [1, 2];

/** The log line of a buffer other than plain memory: `CPU_REPACK`, `AMX` (llama-model.cpp, ggml-cpu), or a GPU's. */
const extraBuffer = /^load_tensors: +(?!CPU(?:_Mapped)? )\S+ model buffer size/;

/** llama-model.cpp, `load_tensors`: the output layer counts as one. */
const offloadLine = /^load_tensors: offloaded (\d+)\/(\d+) layers to GPU/;

/** ggml.h, `ggml_log_level`. Level 5 continues the previous line. */
const logLevel = { warn: 3, error: 4, continued: 5 } as const;

/** Loads the backends that this machine supports, which are files of their own. */
function loadBackends(api: GgmlFunctions, { folder, more }: LibraryFolder): void {
  for (const from of [folder, ...more]) api.ggml_backend_load_all_from_path(from);
}

/**
 * Loads the libraries of a folder, and checks that their structures have the declared layout. Throws an Error with one sentence. `log`
 * receives llama.cpp's warnings and errors.
 */
export function loadLlamaApi(koffi: Koffi, libraries: LibraryFolder, log: LogListener): LlamaApi {
  setStackSize(koffi);
  const structs = declareStructs(koffi);
  // In this order, so that dependencies are loaded already, independently of the system's search path.
  const base = open(koffi, libraries, "ggml-base");
  const ggml = open(koffi, libraries, "ggml");
  const llama = open(koffi, libraries, "llama");
  let firstError: string | null = null;
  let repacks = false;
  let offloaded = { layers: 0, all: 0 };
  const api: LlamaApi = {
    ...(functionsOf(llama, llamaDeclarations, structs) as unknown as LlamaFunctions),
    ...(functionsOf(ggml, ggmlDeclarations, structs) as unknown as GgmlFunctions),
    ...(functionsOf(base, baseDeclarations, structs) as unknown as BaseFunctions),
    koffi,
    structs,
    isEmpty: base.symbol("ggml_is_empty") as Pointer,
    takeError() {
      const first = firstError;
      firstError = null;
      return first;
    },
    repacksWeights: () => repacks,
    gpuName() {
      const device = gpuDevices.map((type) => api.ggml_backend_dev_by_type(type)).find((found) => found !== null);
      return device === undefined ? null : api.ggml_backend_dev_description(device);
    },
    offloaded: () => offloaded,
  };
  const onLog = (level: number, text: string): void => {
    // llama.cpp logs the start, then the type of each buffer, before it reads the weights.
    if (text.startsWith("load_tensors: loading model tensors")) repacks = false;
    else repacks ||= extraBuffer.test(text);
    const [, layers, all] = offloadLine.exec(text) ?? [];
    if (all !== undefined) offloaded = { layers: Number(layers), all: Number(all) };
    if (level !== logLevel.warn && level !== logLevel.error) return;
    const line = text.trim();
    if (line === "") return;
    if (level === logLevel.error) firstError ??= line.replace(/^\w+: /, "");
    // A model that cannot be loaded is reported by the error that opening it throws.
    if (line.startsWith("llama_model_load")) return;
    log(`llama.cpp ${level === logLevel.error ? "error" : "warn"}: ${line}`, "info");
  };
  const callback = koffi.proto("void", ["int", "str", "void *"]);
  api.llama_log_set(koffi.register(onLog, koffi.pointer(callback)), null);
  checkLayout(api);
  loadBackends(api, libraries);
  if (api.ggml_backend_dev_by_type(cpuDevice) === null)
    throw new Error("none of them computes on this machine's processor");
  api.llama_backend_init();
  return api;
}

/**
 * Gives calls the stack that llama.cpp needs: its recursion is as deep as a client's grammar, and expects the stack of a main thread. Koffi takes
 * this only before the first library is loaded.
 */
export function setStackSize(koffi: Koffi): void {
  if (koffi.config().sync_stack_size === stackBytes) return;
  koffi.config({ sync_stack_size: stackBytes, async_stack_size: stackBytes });
}

type Library = ReturnType<Koffi["load"]>;

function open(koffi: Koffi, { folder }: LibraryFolder, name: string): Library {
  const file = libraryFile(folder, name);
  if (file === null) throw new Error(`${folder} holds no library of the name ${name}`);
  return koffi.load(file);
}

function functionsOf(
  library: Library,
  declarations: NativeDeclarations,
  structs: Structs,
): Record<string, ReturnType<Library["func"]>> {
  type Type = Parameters<Koffi["sizeof"]>[0];
  const typeOf = (name: Parameters<typeof koffiType>[0]): Type => koffiType(name, structs) as Type;
  return Object.fromEntries(
    Object.entries(declarations).map(([name, [result, parameters]]) => [
      name,
      library.func(name, typeOf(result), parameters.map(typeOf)),
    ]),
  );
}

/** The version whose structures are declared in `structs.ts`. */
const version = /^0\.5\.0(?:$|[^\d])/;

/** The result of `llama_model_default_params` in llama.cpp v0.5.0. */
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

/** The result of `llama_context_default_params`. */
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

/** The result of `ggml_threadpool_params_default` for three threads. */
const poolDefaults: Omit<ThreadPoolParams, "cpumask"> = {
  n_threads: 3,
  prio: 0,
  poll: 50,
  strict_cpu: false,
  paused: false,
};

/**
 * Compares the structures that the libraries return with the known defaults of this version. A member at another offset, or of another
 * size, would have another value. Throws an Error with one sentence.
 */
export function checkLayout(api: LlamaFunctions & BaseFunctions): void {
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
    // 64-bit numbers are `number` or `bigint`.
    if (read === value || (typeof read === "bigint" && Number(read) === value)) continue;
    throw new Error(
      `the libraries are laid out in another way than llama.cpp 0.5.0: ${name}.${member} is ${String(read)} in place of ${String(value)}`,
    );
  }
}
