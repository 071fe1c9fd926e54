import koffi from "koffi";
import { libraryFolders } from "../../src/engines/llama/process/c-api/library-folders.ts";
import { loadLlamaApi, type LlamaApi } from "../../src/engines/llama/process/c-api/llama-api.ts";
import { NativeModel } from "../../src/engines/llama/process/c-api/native-model.ts";

let api: LlamaApi | undefined;

/** llama.cpp in this process, for the processor. */
export function llamaApi(): LlamaApi {
  const [libraries] = libraryFolders(false);
  if (!libraries) throw new Error("node-llama-cpp is not installed");
  return (api ??= loadLlamaApi(koffi, libraries, () => {}));
}

/** A model in this process: `free` it. */
export function openNativeModel(path: string): NativeModel {
  return new NativeModel(llamaApi(), path, { gpuLayers: 0 });
}
