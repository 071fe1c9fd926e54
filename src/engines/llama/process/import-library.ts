import type * as LlamaLibrary from "node-llama-cpp";
import { ModelOpenError } from "../model-open-error.ts";

type Library = typeof LlamaLibrary;

/** llama.cpp's library, an optional package. Throws `ModelOpenError` with the command that installs it. */
export async function importLibrary(): Promise<Library> {
  try {
    return await import("node-llama-cpp");
  } catch (cause) {
    throw libraryMissing(cause);
  }
}

/** llama.cpp comes with that package, too. */
export function libraryMissing(cause?: unknown): ModelOpenError {
  return new ModelOpenError(
    "library-missing",
    "Local models need the package node-llama-cpp, which is not installed here: npm install node-llama-cpp@3.22.1",
    cause,
  );
}
