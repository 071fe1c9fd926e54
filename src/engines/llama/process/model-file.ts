import { open } from "node:fs/promises";
import type * as LlamaLibrary from "node-llama-cpp";
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
  const path = options.model.startsWith("hf:") ? await download(library, options, onDownload) : options.model;
  await checkIsGguf(path);
  return path;
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
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ModelOpenError("download-failed", `${options.model} could not be downloaded: ${reason}`, cause);
  }
}

async function checkIsGguf(path: string): Promise<void> {
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
