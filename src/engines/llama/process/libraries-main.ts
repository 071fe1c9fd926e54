import { basename } from "node:path";
import { libraryFolders, loadLlamaApi } from "./c-api/llama-api.ts";

/*
 * The entry point of the process in which `truewire doctor` loads the libraries of llama.cpp: one that does not fit this machine can end
 * its process. Prints one line of JSON, a `LoadedLibraries`.
 */

/** The libraries that a local model would use. */
export interface LoadedLibraries {
  /** The variant, such as `linux-x64-cuda`; `null` if node-llama-cpp is not installed. */
  readonly variant: string | null;
  /** Why they cannot be used. */
  readonly failure?: string;
  /** Of llama.cpp. */
  readonly version?: string;
  /** The name of the GPU that they use. */
  readonly gpu?: string;
}

/** ggml-backend.h: GGML_BACKEND_DEVICE_TYPE_GPU, and a GPU that uses main memory. */
const gpuDevices = [1, 2];

async function load(): Promise<LoadedLibraries> {
  const [libraries] = libraryFolders(true);
  if (!libraries) return { variant: null };
  const variant = basename(libraries.folder);
  try {
    const api = loadLlamaApi((await import("koffi")).default, libraries, () => {});
    const version = api.llama_version();
    if (!api.llama_supports_gpu_offload()) return { variant, version };
    const device = gpuDevices.map((type) => api.ggml_backend_dev_by_type(type)).find((found) => found !== null);
    return { variant, version, gpu: device ? api.ggml_backend_dev_description(device) : "a GPU" };
  } catch (error) {
    return { variant, failure: error instanceof Error ? error.message : String(error) };
  }
}

const loaded = await load();
// The callbacks of the libraries would keep the process.
process.stdout.write(`${JSON.stringify(loaded)}\n`, () => process.exit());
