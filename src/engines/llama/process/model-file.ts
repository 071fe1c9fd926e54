import type * as LlamaLibrary from "node-llama-cpp";
import { open, rm } from "node:fs/promises";
import { ModelOpenError } from "../model-open-error.ts";
import type { OpenMessage } from "../protocol.ts";

type Library = typeof LlamaLibrary;

/** Which model, and where it may come from. */
export type ModelSource = Pick<OpenMessage, "model" | "modelsFolder" | "hub">;

/** How much of a download is there, in bytes. */
export interface Downloaded {
  readonly bytes: number;
  readonly totalBytes: number;
}

/** The file to load: the path itself, or what an `hf:` name resolves to, downloaded where it is not there yet. Throws ModelOpenError. */
export async function modelFile(
  library: Library,
  options: ModelSource,
  onDownload: (downloaded: Downloaded) => void,
): Promise<string> {
  if (!options.model.startsWith("hf:")) {
    await checkIsGguf(options.model);
    return options.model;
  }
  let isNew = false;
  const path = await download(library, options, (downloaded) => {
    isNew = true;
    onDownload(downloaded);
  });
  try {
    await checkIsGguf(path);
  } catch (error) {
    // Kept, it would be in the way of every download to come.
    if (isNew) await rm(path, { force: true });
    throw error;
  }
  return path;
}

/** An error for whatever was thrown while a model was downloaded. */
export function downloadFailed({ model }: ModelSource, cause: unknown): ModelOpenError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new ModelOpenError("download-failed", `${model} could not be downloaded: ${reason}`, cause);
}

async function download(
  library: Library,
  options: ModelSource,
  onDownload: (downloaded: Downloaded) => void,
): Promise<string> {
  try {
    return await library.resolveModelFile(options.model, {
      cli: false,
      ...(options.modelsFolder !== undefined && { directory: options.modelsFolder }),
      ...(options.hub !== undefined && { endpoints: { huggingFace: options.hub } }),
      onProgress: ({ totalSize, downloadedSize }) => onDownload({ bytes: downloadedSize, totalBytes: totalSize }),
    });
  } catch (cause) {
    throw downloadFailed(options, cause);
  }
}

/** Throws ModelOpenError for what is not there, or not a model. */
export async function checkIsGguf(path: string): Promise<void> {
  let magic: string;
  try {
    const file = await open(path);
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
      magic = buffer.toString("latin1", 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (cause) {
    const missing = cause instanceof Error && "code" in cause && cause.code === "ENOENT";
    const why = missing
      ? "does not exist"
      : `cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`;
    throw new ModelOpenError("no-such-file", `The model file ${path} ${why}.`, cause);
  }
  if (magic !== "GGUF")
    throw new ModelOpenError("not-a-gguf", `${path} is not a GGUF file: local models are served from GGUF files only.`);
}

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
