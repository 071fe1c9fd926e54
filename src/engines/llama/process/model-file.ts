import type * as LlamaLibrary from "node-llama-cpp";
import { existsSync } from "node:fs";
import { open, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ModelOpenError } from "../model-open-error.ts";
import { bestProjector, projectorFileName, projectorNextTo } from "../vision/find-projector.ts";
import { findMtmd } from "../vision/mtmd-api.ts";
import type { OpenModelMessage } from "../protocol.ts";

type Library = typeof LlamaLibrary;

/** The model, and where to download it. */
export type ModelSource = Pick<OpenModelMessage, "model" | "modelsFolder" | "hub" | "mmproj" | "llamaLibraries">;

/** Progress of a download, in bytes. */
export interface Downloaded {
  readonly bytes: number;
  readonly totalBytes: number;
}

/**
 * The path of the file to load: the given path, or that of an `hf:` name, which is downloaded first if necessary, then with its projector if the
 * repository has one that can be used. Throws ModelOpenError.
 */
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
  let modelBytes = 0;
  const path = await download(library, options, (downloaded) => {
    isNew = true;
    modelBytes = downloaded.totalBytes;
    onDownload(downloaded);
  });
  try {
    await checkIsGguf(path);
  } catch (error) {
    // If it were kept, it would not be downloaded again.
    if (isNew) await rm(path, { force: true });
    throw error;
  }
  await addProjector(library, path, { ...options, isNew }, ({ bytes, totalBytes }) =>
    onDownload({ bytes: modelBytes + bytes, totalBytes: modelBytes + totalBytes }),
  );
  return path;
}

/** Time limit for the list of a repository's files, in milliseconds. A model that is here already must open without a network, too. */
const listMs = 20_000;
const quickListMs = 3000;

/**
 * Downloads the projector of a repository next to the model's file, unless one is there, was configured, or cannot be used. A repository without
 * one, and a failure, are no error: the model then takes no images. An empty file next to the model records that the repository has none, so
 * that the hub is not asked again. `isNew`: the model was downloaded just now.
 */
async function addProjector(
  library: Library,
  path: string,
  { isNew, ...options }: ModelSource & { readonly isNew: boolean },
  onDownload: (downloaded: Downloaded) => void,
): Promise<void> {
  const none = join(dirname(path), `${projectorFileName(path)}.none`);
  if (!isNew && existsSync(none)) return;
  if (options.mmproj !== undefined || !findMtmd(options.llamaLibraries) || (await projectorNextTo(path))) return;
  const [, repository = ""] = /^hf:([^/]+\/[^/:]+)/.exec(options.model) ?? [];
  try {
    const files = await filesOf(repository, options.hub, isNew ? listMs : quickListMs);
    const name = bestProjector(files, basename(path), { isRepository: true });
    if (name === null) return await writeFile(none, "");
    await library.resolveModelFile(`hf:${repository}/${name}`, {
      cli: false,
      directory: dirname(path),
      fileName: projectorFileName(path),
      ...(options.hub !== undefined && { endpoints: { huggingFace: options.hub } }),
      onProgress: ({ totalSize, downloadedSize }) => onDownload({ bytes: downloadedSize, totalBytes: totalSize }),
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (isNew)
      console.error(`The projector of ${repository} was not downloaded, so the model takes no images: ${reason}`);
  }
}

/** The paths of the files of a repository. Source: Hugging Face Hub's API, `GET /api/models/{repo}/tree/{revision}`. */
async function filesOf(repository: string, hub: string | undefined, timeoutMs: number): Promise<string[]> {
  const endpoint = hub ?? process.env["MODEL_ENDPOINT"] ?? process.env["HF_ENDPOINT"] ?? "https://huggingface.co/";
  const url = new URL(`api/models/${repository}/tree/main?recursive=true`, endpoint.replace(/\/?$/, "/"));
  const token = process.env["HF_TOKEN"];
  const response = await fetch(url, {
    signal: AbortSignal.timeout(timeoutMs),
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
  });
  if (!response.ok) throw new Error(`${url.href} answered ${response.status}`);
  const files: unknown = await response.json();
  if (!Array.isArray(files)) throw new Error(`${url.href} answered with something other than a list of files`);
  return files.flatMap((file: { readonly path?: unknown } | null) =>
    typeof file?.path === "string" && file.path.endsWith(".gguf") ? [file.path] : [],
  );
}

/** The error for a download that failed. */
export function downloadFailed({ model }: ModelSource, cause: unknown): ModelOpenError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const isOffline = /fetch failed|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH/.test(reason);
  const why = isOffline
    ? "huggingface.co cannot be reached from this machine. Check the network and the proxy (HTTPS_PROXY), or download the file elsewhere and pass its path"
    : reason;
  return new ModelOpenError("download-failed", `${model} could not be downloaded: ${why}`, cause);
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

/** Throws ModelOpenError for a file that does not exist or is not a GGUF file. */
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

/** Loads node-llama-cpp, an optional package, which downloads models. Throws `ModelOpenError` with the command that installs it. */
export async function importLibrary(): Promise<Library> {
  try {
    return await import("node-llama-cpp");
  } catch (cause) {
    throw new ModelOpenError(
      "library-missing",
      "To download models, Truewire needs the package node-llama-cpp, which is not installed here: npm install node-llama-cpp@3.22.1",
      cause,
    );
  }
}

/** The error if the libraries of llama.cpp are missing. */
export function libraryMissing(): ModelOpenError {
  return new ModelOpenError(
    "library-missing",
    "Local models need llama.cpp's libraries, which are not installed here: truewire libraries install",
  );
}
