import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { libraryFile, packageFolder } from "../libraries/library-folders.ts";
import type { Koffi, Pointer } from "../process/c-api/structs.ts";

/** Where llama.cpp's libmtmd is, which encodes images: a folder of libraries, or one file with all of llama.cpp. */
export type MtmdSource = { readonly folder: string } | { readonly file: string };

/** The optional package whose library exports the functions of libmtmd: that of `@fugood/llama.node` for this platform. */
export const mtmdPackage = `@fugood/node-llama-${process.platform}-${process.arch}@1.7.15`;

/** Finds libmtmd: in the configured folder, else in the optional package. Returns `null` if it is not installed. */
export function findMtmd(folder: string | undefined): MtmdSource | null {
  if (folder !== undefined && libraryFile(folder, "mtmd") !== null) return { folder };
  const { platform, arch } = process;
  const name = `node-llama-${platform}-${arch}`;
  const here = dirname(fileURLToPath(import.meta.url));
  const from = packageFolder(here, join("@fugood", "llama.node"));
  const found = packageFolder(from ?? here, join("@fugood", name));
  const file = found && join(found, "index.node");
  return file !== null && existsSync(file) ? { file } : null;
}

type Library = ReturnType<Koffi["load"]>;
type Member = "bool" | "int32_t" | "void *";
type Members = Readonly<Record<string, Member>>;
type Values = Record<string, number | boolean | bigint | null>;

/** A structure in one version of llama.cpp, with the values that the library sets in it. */
interface Layout {
  readonly members: Members;
  readonly defaults: Values;
}

const pointer = "void *";

/** `llama_model_params`; `more`: the members after `load_mode`. */
function modelParams(loadMode: number, more: Members, values: Values): Layout {
  return {
    members: {
      devices: pointer,
      tensor_buft_overrides: pointer,
      n_gpu_layers: "int32_t",
      split_mode: "int32_t",
      load_mode: "int32_t",
      ...more,
      main_gpu: "int32_t",
      tensor_split: pointer,
      progress_callback: pointer,
      progress_callback_user_data: pointer,
      kv_overrides: pointer,
      vocab_only: "bool",
      check_tensors: "bool",
      use_extra_bufts: "bool",
      no_host: "bool",
      no_alloc: "bool",
      load_mtp: "bool",
    },
    defaults: {
      devices: null,
      tensor_buft_overrides: null,
      n_gpu_layers: -1,
      split_mode: 1,
      load_mode: loadMode,
      ...values,
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
    },
  };
}

/** `mtmd_context_params`; `more`: the members after `use_gpu`. */
function contextParams(more: Members, values: Values): Layout {
  return {
    members: {
      use_gpu: "bool",
      ...more,
      print_timings: "bool",
      n_threads: "int32_t",
      image_marker: pointer,
      media_marker: pointer,
      flash_attn_type: "int32_t",
      warmup: "bool",
      image_min_tokens: "int32_t",
      image_max_tokens: "int32_t",
      cb_eval: pointer,
      cb_eval_user_data: pointer,
      batch_max_tokens: "int32_t",
      progress_callback: pointer,
      progress_callback_user_data: pointer,
    },
    defaults: {
      use_gpu: true,
      ...values,
      print_timings: true,
      n_threads: 4,
      image_marker: null,
      flash_attn_type: -1,
      warmup: true,
      image_min_tokens: -1,
      image_max_tokens: -1,
      cb_eval: null,
      cb_eval_user_data: null,
      batch_max_tokens: 1024,
      progress_callback: null,
      progress_callback_user_data: null,
    },
  };
}

/** The known layouts: of llama.cpp v0.5.0, and of the version in `mtmdPackage` (ggml 0.18.0). */
const modelLayouts = [modelParams(-1, { lazy_mode: "int32_t" }, { lazy_mode: 1 }), modelParams(1, {}, {})];
const contextLayouts = [contextParams({ device: pointer }, { device: null }), contextParams({}, {})];

/** More than any version of the structures has. A structure of more than 16 bytes is passed in memory, where a longer one does no harm. */
const maxStructBytes = 256;

const functions = {
  mtmd_init_from_file: [pointer, ["str", pointer, "params"]],
  mtmd_support_vision: ["bool", [pointer]],
  mtmd_support_audio: ["bool", [pointer]],
  mtmd_decode_use_mrope: ["bool", [pointer]],
  mtmd_decode_use_non_causal: ["bool", [pointer, pointer]],
  mtmd_helper_bitmap_init_from_buf: ["wrapper", [pointer, pointer, "size_t", "bool", "options"]],
  mtmd_bitmap_get_nx: ["uint32_t", [pointer]],
  mtmd_bitmap_get_ny: ["uint32_t", [pointer]],
  mtmd_bitmap_get_data: [pointer, [pointer]],
  mtmd_bitmap_get_n_bytes: ["size_t", [pointer]],
  mtmd_bitmap_is_audio: ["bool", [pointer]],
  mtmd_bitmap_free: ["void", [pointer]],
  mtmd_input_chunks_init: [pointer, []],
  mtmd_input_chunks_size: ["size_t", [pointer]],
  mtmd_input_chunks_get: [pointer, [pointer, "size_t"]],
  mtmd_input_chunks_free: ["void", [pointer]],
  mtmd_input_chunk_get_type: ["int32_t", [pointer]],
  mtmd_input_chunk_get_tokens_text: [pointer, [pointer, pointer]],
  mtmd_input_chunk_get_tokens_image: [pointer, [pointer]],
  mtmd_input_chunk_get_n_tokens: ["size_t", [pointer]],
  mtmd_input_chunk_get_n_pos: ["int32_t", [pointer]],
  mtmd_image_tokens_get_decoder_pos: ["position", [pointer, "int32_t", "size_t"]],
  mtmd_tokenize: ["int32_t", [pointer, pointer, pointer, pointer, "size_t"]],
  mtmd_encode_chunk: ["int32_t", [pointer, pointer]],
  mtmd_get_output_embd: [pointer, [pointer]],
  llama_model_load_from_file: [pointer, ["str", "params"]],
} as const;

export type Mtmd = Readonly<Record<keyof typeof functions, (...values: unknown[]) => unknown>>;

/** libmtmd with the layouts that fit it. */
export interface MtmdApi extends Mtmd {
  readonly koffi: Koffi;
  /** The text that represents an image in a prompt. */
  readonly marker: string;
  /** Returns `llama_model_params` with changed members. */
  modelParams(changed: Values): unknown;
  /** Returns `mtmd_context_params` with changed members. */
  contextParams(changed: Values): unknown;
  /** What the library has logged since the last call. */
  takeLog(): readonly string[];
}

/** Loads libmtmd and proves the layout of its structures. Throws an Error of one sentence. `log` receives warnings and errors. */
export function loadMtmd(koffi: Koffi, source: MtmdSource, log: (line: string) => void): MtmdApi {
  const stackBytes = 8 * 2 ** 20;
  koffi.config({ sync_stack_size: stackBytes, async_stack_size: stackBytes });
  const { llama, mtmd, ggml } = librariesOf(koffi, source);
  const types: Record<string, unknown> = {
    params: koffi.struct({ bytes: koffi.array("uint8_t", maxStructBytes, "Typed") }),
    wrapper: koffi.struct({ bitmap: pointer, video: pointer }),
    options: koffi.struct({ fps_target: "float", ffmpeg_bin_dir: "str", timestamp_interval_ms: "int64_t" }),
    position: koffi.struct({ t: "uint32_t", x: "uint32_t", y: "uint32_t", z: "uint32_t" }),
  };
  const bind = (library: Library, name: string, result: string, parameters: readonly string[]) => {
    type Type = Parameters<Koffi["sizeof"]>[0];
    const typeOf = (type: string): Type => (types[type] ?? type) as Type;
    try {
      return library.func(name, typeOf(result), parameters.map(typeOf)) as (...values: unknown[]) => unknown;
    } catch (cause) {
      throw new Error(`it has no function ${name}`, { cause });
    }
  };
  const bound = Object.fromEntries(
    Object.entries(functions).map(([name, [result, parameters]]) => [
      name,
      bind(name.startsWith("llama_") ? llama : mtmd, name, result, parameters),
    ]),
  ) as Mtmd;
  let lines: string[] = [];
  const onLog = (level: number, text: string): void => {
    const line = text.trim();
    if (line === "") return;
    lines.push(line);
    if (lines.length > 1000) lines = lines.slice(-500);
    if (level === 4) log(line);
  };
  const callback = koffi.register(onLog, koffi.pointer(koffi.proto("void", ["int", "str", pointer])));
  bind(llama, "llama_log_set", "void", [pointer, pointer])(callback, null);
  bind(mtmd, "mtmd_helper_log_set", "void", [pointer, pointer])(callback, null);
  const marker = bind(mtmd, "mtmd_default_marker", "str", [])() as string;
  const defaultsOf = (library: Library, name: string): Uint8Array =>
    (bind(library, name, "params", [])() as { bytes: Uint8Array }).bytes;
  const model = fitting(koffi, "llama_model_params", modelLayouts, defaultsOf(llama, "llama_model_default_params"));
  const context = fitting(
    koffi,
    "mtmd_context_params",
    contextLayouts,
    defaultsOf(mtmd, "mtmd_context_params_default"),
    ({ media_marker: address }) =>
      typeof address === "bigint" && koffi.decode(address, "char", marker.length + 1) === marker,
  );
  if ("folder" in source) bind(ggml, "ggml_backend_load_all_from_path", "void", ["str"])(source.folder);
  bind(llama, "llama_backend_init", "void", [])();
  return {
    ...bound,
    koffi,
    marker,
    modelParams: (changed) => model(changed),
    contextParams: (changed) => context(changed),
    takeLog() {
      const taken = lines;
      lines = [];
      return taken;
    },
  };
}

function librariesOf(koffi: Koffi, source: MtmdSource): Record<"ggml" | "llama" | "mtmd", Library> {
  if ("file" in source) {
    const all = koffi.load(source.file);
    return { ggml: all, llama: all, mtmd: all };
  }
  // In this order, so that dependencies are loaded already.
  const open = (name: string): Library => {
    const file = libraryFile(source.folder, name);
    if (file === null) throw new Error(`${source.folder} has no library of the name ${name}`);
    return koffi.load(file);
  };
  open("ggml-base");
  return { ggml: open("ggml"), llama: open("llama"), mtmd: open("mtmd") };
}

/**
 * Finds the layout in which the library's defaults have the known values, and returns a function that makes the structure with changed
 * members. Throws an Error of one sentence if no layout fits: a member at another offset would have another value.
 */
function fitting(
  koffi: Koffi,
  name: string,
  layouts: readonly Layout[],
  bytes: Uint8Array,
  isRight: (values: Values) => boolean = () => true,
): (changed: Values) => { bytes: Uint8Array } {
  for (const { members, defaults } of layouts) {
    const struct = koffi.struct({ ...members });
    const read = koffi.decode(Buffer.from(bytes), struct) as Values;
    if (Object.entries(defaults).some(([member, value]) => read[member] !== value) || !isRight(read)) continue;
    return (changed) => {
      const copy = Buffer.from(bytes);
      koffi.encode(copy, struct, { ...read, ...changed });
      return { bytes: new Uint8Array(copy) };
    };
  }
  throw new Error(`its ${name} has another layout than the versions that are known`);
}

/** Reads `count` numbers of native memory. */
export function numbersAt(
  koffi: Koffi,
  address: Pointer,
  type: "float" | "int32_t",
  count: number,
): Float32Array | Int32Array {
  if (address === null) throw new Error("libmtmd returned no data");
  const view = koffi.view(address, count * 4);
  return type === "float" ? new Float32Array(view).slice() : new Int32Array(view).slice();
}
