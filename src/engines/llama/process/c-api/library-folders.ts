import { existsSync, readdirSync, realpathSync } from "node:fs";
import { dirname, join, parse } from "node:path";
import { fileURLToPath } from "node:url";

/** Ready-made libraries of llama.cpp: a package of node-llama-cpp's has them for one platform. */
export interface LibraryFolder {
  /** Where the libraries are. */
  readonly folder: string;
  /** More backends, which their package keeps apart. */
  readonly more: readonly string[];
}

/**
 * The folders with libraries for this machine, the best first: those for a GPU where one is wanted and its package is installed, then
 * those for the processor. Empty: node-llama-cpp is not installed, or has none for this platform.
 */
export function libraryFolders(wantsGpu: boolean): LibraryFolder[] {
  const library = packageFolder(dirname(fileURLToPath(import.meta.url)), "node-llama-cpp");
  if (library === null) return [];
  return variants(wantsGpu).flatMap((name) => {
    const folder = binaries(library, name);
    if (folder === null) return [];
    const more = [binaries(library, `${name}-ext`)].filter((extra) => extra !== null);
    return [{ folder, more }];
  });
}

/** Where a library of this name stands in a folder; null: nowhere. Names are `libllama.v0.5.0.so`, `llama.dll` and the like. */
export function libraryFile(folder: string, name: string): string | null {
  const pattern = new RegExp(`^(?:lib)?${name}(?:\\.v[\\d.]+)?\\.(?:so|dylib|dll)$`);
  const file = readdirSync(folder).find((entry) => pattern.test(entry));
  return file === undefined ? null : join(folder, file);
}

/** Names of the platform's packages, as node-llama-cpp has them. */
function variants(wantsGpu: boolean): string[] {
  const { platform, arch } = process;
  if (platform === "darwin") return arch === "arm64" ? ["mac-arm64-metal"] : ["mac-x64"];
  const system = platform === "win32" ? "win" : "linux";
  const plain = `${system}-${arch === "arm" ? "armv7l" : arch}`;
  return wantsGpu && arch === "x64" ? [`${plain}-cuda`, `${plain}-vulkan`, plain] : [plain];
}

function binaries(library: string, name: string): string | null {
  const found = packageFolder(library, join("@node-llama-cpp", name));
  if (found === null) return null;
  // A package that was replaced by an empty one has no such folder.
  const folder = join(found, "bins", name);
  return existsSync(folder) ? folder : null;
}

/** A package's folder as Node finds it from here: in the nearest `node_modules`, links followed. */
function packageFolder(from: string, name: string): string | null {
  const { root } = parse(from);
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, "node_modules", name);
    if (existsSync(join(candidate, "package.json"))) return realpathSync(candidate);
    if (folder === root) return null;
  }
}
