import { existsSync, readdirSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, parse } from "node:path";
import { fileURLToPath } from "node:url";
import { buildsFor, buildVersion, type Backend, type Build } from "./builds.ts";

/** Prebuilt libraries of llama.cpp. */
export interface LibraryFolder {
  /** Absent for a folder of the user, such as a build for ROCm. */
  readonly backend?: Backend;
  readonly folder: string;
  /** Folders with more backends, from a separate package. */
  readonly more: readonly string[];
}

/**
 * The installed builds for this machine: for `wantsGpu` those for GPUs first, else the one for the processor, which the others contain, too.
 * They are packages next to node-llama-cpp, or were installed by `truewire libraries install`. Empty if there are none.
 */
export function libraryFolders(wantsGpu: boolean): LibraryFolder[] {
  const builds = buildsFor(process.platform, process.arch);
  return (wantsGpu ? builds : builds.toReversed()).flatMap((build) => installedBuild(build) ?? []);
}

/** A build that is installed; undefined if it is not. */
export function installedBuild({ backend, packages }: Build): LibraryFolder | undefined {
  const [folder, ...more] = packages.map((name) => folderOf(name));
  return folder === undefined ? undefined : { backend, folder, more: more.filter((one) => one !== undefined) };
}

function folderOf(name: string): string | undefined {
  const own = installFolder(name);
  if (existsSync(own)) return own;
  const library = packageFolder(dirname(fileURLToPath(import.meta.url)), "node-llama-cpp");
  const found = library && packageFolder(library, join("@node-llama-cpp", name));
  // A package that is replaced by an empty one has no such folder.
  const folder = found && join(found, "bins", name);
  return folder && existsSync(folder) ? folder : undefined;
}

/** Where `truewire libraries install` puts a package: below the user's folder for data of programs. */
export function installFolder(name: string): string {
  return join(dataFolder(process.platform, process.env, homedir()), "libraries", buildVersion, name);
}

/**
 * Truewire's folder in the user's folder for data of programs. Sources: XDG Base Directory Specification; Apple's File System Programming
 * Guide; Windows' known folders.
 */
export function dataFolder(platform: NodeJS.Platform, env: NodeJS.ProcessEnv, home: string): string {
  if (platform === "win32") return join(env["LOCALAPPDATA"] || join(home, "AppData", "Local"), "truewire");
  if (platform === "darwin") return join(home, "Library", "Application Support", "truewire");
  return join(env["XDG_DATA_HOME"] || join(home, ".local", "share"), "truewire");
}

/**
 * The path of a library in a folder, `null` if there is none. Files are named `libllama.v0.5.0.so`, `libggml.vulkan.v0.5.0.so`, `llama.dll`
 * and so on.
 */
export function libraryFile(folder: string, name: string): string | null {
  const pattern = new RegExp(`^(?:lib)?${name}(?:\\.(?:cuda|vulkan|metal))?(?:\\.v[\\d.]+)?\\.(?:so|dylib|dll)$`);
  const file = readdirSync(folder).find((entry) => pattern.test(entry));
  return file === undefined ? null : join(folder, file);
}

/** A package's folder as Node resolves it: in the nearest `node_modules`, with links resolved. */
export function packageFolder(from: string, name: string): string | null {
  const { root } = parse(from);
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, "node_modules", name);
    if (existsSync(join(candidate, "package.json"))) return realpathSync(candidate);
    if (folder === root) return null;
  }
}
