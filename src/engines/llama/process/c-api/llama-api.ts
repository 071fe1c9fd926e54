import type { Observe } from "../../../../core/observe.ts";
import {
  baseDeclarations,
  ggmlDeclarations,
  llamaDeclarations,
  type BaseFunctions,
  type GgmlFunctions,
  type LlamaFunctions,
} from "./functions.ts";
import { libraryFile, type LibraryFolder } from "./library-folders.ts";
import { proveLayout } from "./prove-layout.ts";
import { declareStructs, type Koffi, type Pointer, type Structs } from "./structs.ts";

/** llama.cpp's C API, from ready-made libraries. One for each process. */
export interface LlamaApi extends LlamaFunctions, GgmlFunctions, BaseFunctions {
  readonly koffi: Koffi;
  readonly structs: Structs;
  /** A function that says `true` when the memory behind its argument says so: see `AbortFlag`. */
  readonly isEmpty: Pointer;
  /** What llama.cpp complained of first since this was asked before: the reason why something could not be done. */
  takeComplaint(): string | null;
  /** Whether the model that is being loaded, or was loaded last, has weights in another layout than its file has (ggml: extra buffer types). */
  repacks(): boolean;
}

const stackBytes = 8 * 2 ** 20;

/** ggml-backend.h, `GGML_BACKEND_DEVICE_TYPE_CPU`. */
const cpuDevice = 0;

/** The buffer of another type than plain memory: `CPU_REPACK`, `AMX` (llama.cpp, llama-model.cpp and ggml-cpu). GPUs have their own, too. */
const extraBuffer = /^load_tensors: +(?!CPU(?:_Mapped)? )\S+ model buffer size/;

/** Kinds of messages (ggml.h, `ggml_log_level`); 5 continues the line before. */
const logLevel = { warn: 3, error: 4, continued: 5 } as const;

/** Backends that only some machines have come from files of their own, which this loads: those that the machine can run. */
function loadBackends(api: GgmlFunctions, { folder, more }: LibraryFolder): void {
  for (const from of [folder, ...more]) api.ggml_backend_load_all_from_path(from);
}

/**
 * Loads the libraries of a folder, and proves that they are laid out as they are declared here. Throws an Error with one sentence for
 * whatever is wrong. `log` hears llama.cpp's warnings and errors.
 */
export function loadLlamaApi(koffi: Koffi, libraries: LibraryFolder, log: Observe): LlamaApi {
  // llama.cpp's calls nest where a client's grammar does, and had a main thread's stack to do so.
  koffi.config({ sync_stack_size: stackBytes, async_stack_size: stackBytes });
  const structs = declareStructs(koffi);
  // In this order, so that each finds those that it needs already loaded, whatever the system's search path is.
  const base = open(koffi, libraries, "ggml-base");
  const ggml = open(koffi, libraries, "ggml");
  const llama = open(koffi, libraries, "llama");
  let complaint: string | null = null;
  let repacks = false;
  const api: LlamaApi = {
    ...(functionsOf(llama, llamaDeclarations(structs)) as unknown as LlamaFunctions),
    ...(functionsOf(ggml, ggmlDeclarations) as unknown as GgmlFunctions),
    ...(functionsOf(base, baseDeclarations(structs)) as unknown as BaseFunctions),
    koffi,
    structs,
    isEmpty: base.symbol("ggml_is_empty") as Pointer,
    takeComplaint() {
      const first = complaint;
      complaint = null;
      return first;
    },
    repacks: () => repacks,
  };
  const hear = (level: number, text: string): void => {
    // llama.cpp logs that it begins, then the type of each buffer, and then it reads the weights.
    if (text.startsWith("load_tensors: loading model tensors")) repacks = false;
    else repacks ||= extraBuffer.test(text);
    if (level !== logLevel.warn && level !== logLevel.error) return;
    const line = text.trim();
    if (line === "") return;
    if (level === logLevel.error) complaint ??= line.replace(/^\w+: /, "");
    // That a model cannot be loaded is told by the error that its opening ends with.
    if (line.startsWith("llama_model_load")) return;
    log(`llama.cpp ${level === logLevel.error ? "error" : "warn"}: ${line}`, "info");
  };
  const callback = koffi.proto("void", ["int", "str", "void *"]);
  api.llama_log_set(koffi.register(hear, koffi.pointer(callback)), null);
  proveLayout(api);
  loadBackends(api, libraries);
  if (api.ggml_backend_dev_by_type(cpuDevice) === null)
    throw new Error("none of them computes on this machine's processor");
  api.llama_backend_init();
  return api;
}

type Library = ReturnType<Koffi["load"]>;

function open(koffi: Koffi, { folder }: LibraryFolder, name: string): Library {
  const file = libraryFile(folder, name);
  if (file === null) throw new Error(`${folder} holds no library of the name ${name}`);
  return koffi.load(file);
}

function functionsOf(
  library: Library,
  declarations: Readonly<Record<string, readonly [unknown, readonly unknown[]]>>,
): Record<string, ReturnType<Library["func"]>> {
  type Type = Parameters<Koffi["sizeof"]>[0];
  return Object.fromEntries(
    Object.entries(declarations).map(([name, [result, parameters]]) => [
      name,
      library.func(name, result as Type, parameters as Type[]),
    ]),
  );
}
