import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { type Build, buildVersion, integrity } from "./builds.ts";
import { installFolder } from "./library-folders.ts";
import { loadLibraries } from "./load-libraries.ts";
import { NpmRegistry } from "./npm-registry.ts";

const run = promisify(execFile);

export interface InstallOptions {
  readonly onProgress: (downloaded: {
    readonly name: string;
    readonly bytes: number;
    readonly totalBytes: number;
  }) => void;
  readonly registry?: NpmRegistry;
}

/**
 * Downloads the packages of a build from the npm registry into the user's folder, and proves that the libraries load and have the expected
 * layout before they are used. A download that broke off is resumed. Resolves with the folder and the size of what was downloaded, in bytes.
 * Throws an Error with one sentence.
 */
export async function installBuild(
  { packages }: Build,
  options: InstallOptions,
): Promise<{ folder: string; bytes: number }> {
  const registry = options.registry ?? new NpmRegistry();
  const [first = "", ...more] = packages.map((name) => installFolder(name));
  const unpacked: string[] = [];
  let bytes = 0;
  try {
    for (const name of packages) {
      const archive = await download(name, registry, options);
      bytes += (await stat(archive)).size;
      unpacked.push(await unpack(archive, name));
      await rm(archive);
    }
    const { failure } = await loadLibraries(unpacked);
    if (failure !== undefined) throw new Error(`The downloaded libraries cannot be used: ${failure}.`);
    for (const [at, folder] of [first, ...more].entries()) {
      await rm(folder, { recursive: true, force: true });
      await rename(unpacked[at] ?? "", folder);
    }
  } finally {
    for (const folder of unpacked) await rm(folder, { recursive: true, force: true });
    if (!options.registry) await registry.close();
  }
  return { folder: first, bytes };
}

/** Returns the path of the archive of a package, whose hash is right. */
async function download(name: string, registry: NpmRegistry, { onProgress }: InstallOptions): Promise<string> {
  const archive = await registry.find(name, buildVersion);
  const expected = integrity[name] ?? archive.integrity;
  const part = `${installFolder(name)}.tgz.part`;
  await mkdir(dirname(part), { recursive: true });
  const here = await stat(part).then(
    ({ size }) => size,
    () => 0,
  );
  // What is here may be all.
  if (here === 0 || !(await hasHash(part, expected))) {
    const { body, from, bytes } = await registry.download(archive.url, here);
    let done = from;
    body.on("data", (chunk: Buffer) => onProgress({ name, bytes: (done += chunk.length), totalBytes: bytes }));
    await pipeline(body, createWriteStream(part, { flags: from > 0 ? "a" : "w" })).catch((cause: Error) => {
      throw new Error(`The download of ${name} broke off (${cause.message}): the same command resumes it.`, { cause });
    });
    if (!(await hasHash(part, expected))) {
      await rm(part);
      throw new Error(`${archive.url} is not the expected file: its hash is not ${expected}.`);
    }
  }
  return part;
}

/** `expected` in npm's form: `sha512-` and base64. */
async function hasHash(file: string, expected: string): Promise<boolean> {
  const hash = createHash("sha512");
  await pipeline(createReadStream(file), hash);
  return `sha512-${hash.digest("base64")}` === expected;
}

/** Unpacks the libraries of an archive, with the system's tar, which Windows has, too. Returns their folder. */
async function unpack(archive: string, name: string): Promise<string> {
  const folder = `${installFolder(name)}.new`;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  // In the folder, by names without a drive: GNU's tar on Windows takes `C:` for another machine.
  const args = ["-xzf", basename(archive), "-C", basename(folder), "--strip-components=3", `package/bins/${name}`];
  await run("tar", args, { cwd: dirname(archive) }).catch((cause: Error) => {
    throw new Error(`${archive} cannot be unpacked by tar: ${cause.message.split("\n")[0]}.`, { cause });
  });
  return folder;
}
