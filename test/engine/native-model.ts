import koffi from "koffi";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { writeProgrammedModel, type ProgrammedModel } from "../fixtures/programmed-model.ts";
import { libraryFolders } from "../../src/engines/llama/libraries/library-folders.ts";
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

/** The programmed model, in this process, while a file's tests run. */
export function useProgrammedModel(): { readonly model: NativeModel; readonly programmed: ProgrammedModel } {
  const folder = mkdtempSync(join(tmpdir(), "truewire-"));
  let opened: { readonly model: NativeModel; readonly programmed: ProgrammedModel } | undefined;
  const use = (): NonNullable<typeof opened> => {
    if (!opened) throw new Error("The programmed model is there while tests run.");
    return opened;
  };
  beforeAll(() => {
    const path = join(folder, "programmed.gguf");
    const programmed = writeProgrammedModel(path);
    opened = { programmed, model: openNativeModel(path) };
  });
  afterAll(() => {
    opened?.model.free();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    get model() {
      return use().model;
    },
    get programmed() {
      return use().programmed;
    },
  };
}
