import { createInterface } from "node:readline/promises";
import { buildsFor, type Backend, type Build } from "../../engines/llama/libraries/builds.ts";
import { installBuild } from "../../engines/llama/libraries/install.ts";
import { installedBuild } from "../../engines/llama/libraries/library-folders.ts";
import { loadLibraries } from "../../engines/llama/libraries/load-libraries.ts";
import { openProgressLine } from "./progress-line.ts";

/** A build of llama.cpp for this platform, as `truewire libraries` lists it. */
interface ListedBuild {
  readonly name: Backend;
  /** The folder; null: not installed. */
  readonly installed: string | null;
  /** Local models use it. */
  readonly used: boolean;
  readonly fits: boolean;
  /** Why it fits this machine or does not: the device and the version of its driver, or what is missing. */
  readonly why: string;
}

/** `truewire libraries list`. */
export async function listLibraries({ json }: { readonly json?: true }): Promise<void> {
  const builds = await listedBuilds();
  if (json) return console.log(JSON.stringify({ builds }, null, 2));
  const rows = builds.map(({ name, installed, used, fits, why }) => [
    name,
    used ? "used" : installed === null ? "no" : "yes",
    fits ? "yes" : "no",
    why,
  ]);
  const table = [
    ["BUILD", "INSTALLED", "FITS", "WHY"],
    ...rows,
    ["rocm", "by folder", "-", "--llama-libraries FOLDER"],
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  for (const row of table) console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
  for (const { name, installed } of builds) if (installed !== null) console.log(`\n${name}: ${installed}`);
  const best = builds.find(({ fits }) => fits);
  if (best && best.installed === null)
    console.log(`\nThe best for this machine: truewire libraries install ${best.name}`);
}

/** `truewire libraries install`. `name`: of a build; default: the best that fits this machine. Throws an Error with one sentence. */
export async function installLibraries(name: string | undefined): Promise<void> {
  const builds = buildsFor(process.platform, process.arch);
  const best = name ?? (await listedBuilds()).find(({ fits }) => fits)?.name;
  const build = builds.find(({ backend }) => backend === best);
  if (build) return install(build);
  const names = builds.map(({ backend }) => backend).join(", ");
  throw new Error(
    builds.length === 0
      ? `There is no build of llama.cpp for ${process.platform} on ${process.arch}. Build llama.cpp 0.5.0, and name its folder: --llama-libraries FOLDER`
      : `There is no build ${name ?? ""} for this platform: expected one of ${names}. For others, such as ROCm, name the folder of a build of llama.cpp 0.5.0: --llama-libraries FOLDER`,
  );
}

/** Asks on a terminal whether to download libraries. Returns whether they were. Throws an Error with one sentence if that fails. */
export async function offerLibraries(): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false;
  const prompt = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await prompt.question(
    "Local models need llama.cpp's libraries, which are not installed. Download them now? [Y/n] ",
  );
  prompt.close();
  if (!["", "y", "yes"].includes(answer.trim().toLowerCase())) return false;
  await installLibraries(undefined);
  return true;
}

async function install(build: Build): Promise<void> {
  const line = openProgressLine(process.stderr);
  try {
    const { folder, bytes } = await installBuild(build, {
      onProgress: ({ name, bytes: done, totalBytes }) =>
        line.show({ text: `downloading ${name}`, ...(totalBytes > 0 && { fraction: done / totalBytes }) }),
    });
    line.close();
    console.log(
      `The ${build.backend} build of llama.cpp is installed (${(bytes / 1e6).toFixed(1)} MB downloaded): ${folder}`,
    );
  } finally {
    line.close();
  }
}

async function listedBuilds(): Promise<ListedBuild[]> {
  const { variant, failure, drivers = {} } = await loadLibraries();
  if (failure !== undefined && variant === null) throw new Error(failure);
  return buildsFor(process.platform, process.arch).map((build) => {
    const { fits = false, why = failure ?? "unknown" } = drivers[build.backend] ?? {};
    const installed = installedBuild(build)?.folder ?? null;
    const used = installed !== null && build.packages[0] === variant;
    const broken = used && failure !== undefined;
    return { name: build.backend, installed, used, fits: fits && !broken, why: broken ? failure : why };
  });
}
