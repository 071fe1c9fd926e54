import { basename } from "node:path";
import { buildsFor, type Backend } from "../libraries/builds.ts";
import { chooseLibraries } from "../libraries/choose-libraries.ts";
import { findDriver, type Driver } from "../libraries/drivers.ts";
import type { LibraryFolder } from "../libraries/library-folders.ts";
import { loadLlamaApi } from "./c-api/llama-api.ts";
import type { Koffi } from "./c-api/structs.ts";

/*
 * The entry point of the process that loads the libraries of llama.cpp and asks drivers for their devices, for `truewire doctor` and
 * `truewire libraries`: what does not fit this machine can end its process. With arguments, it loads these folders; without, what a model
 * would use. Prints one line of JSON, a `LoadedLibraries`.
 */

/** The libraries that a local model would use. */
export interface LoadedLibraries {
  /** The build, such as `linux-x64-cuda`; `null` if none is installed. */
  readonly variant: string | null;
  /** Why they cannot be used. */
  readonly failure?: string;
  /** Of llama.cpp. */
  readonly version?: string;
  /** The name of the GPU that they use. */
  readonly gpu?: string;
  /** Why they use none. */
  readonly noGpu?: string;
  /** What the drivers of this machine say, whether a build for them is installed or not. */
  readonly drivers?: Partial<Record<Backend, Driver>>;
}

async function load([folder, ...more]: readonly string[]): Promise<LoadedLibraries> {
  const { default: koffi } = await import("koffi");
  if (folder !== undefined) return loadedFrom(koffi, { folder, more });
  const chosen = chooseLibraries(koffi, true);
  const drivers = Object.fromEntries(
    buildsFor(process.platform, process.arch).map(({ backend }) => [backend, findDriver(koffi, backend)]),
  );
  if (!chosen) return { variant: null, drivers };
  const { libraries, noGpu } = chosen;
  return { ...loadedFrom(koffi, libraries), noGpu, drivers };
}

function loadedFrom(koffi: Koffi, libraries: LibraryFolder): LoadedLibraries {
  const variant = basename(libraries.folder);
  try {
    const api = loadLlamaApi(koffi, libraries, () => {});
    const gpu = api.gpuName();
    return { variant, version: api.llama_version(), ...(gpu !== null && { gpu }) };
  } catch (error) {
    return { variant, failure: error instanceof Error ? error.message : String(error) };
  }
}

const loaded = await load(process.argv.slice(2)).catch((error: unknown): LoadedLibraries => ({
  variant: null,
  failure: error instanceof Error ? error.message : String(error),
}));
// The callbacks of the libraries would keep the process.
process.stdout.write(`${JSON.stringify(loaded)}\n`, () => process.exit());
