import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Packs the package and installs the tarball into an empty folder, as a user's project. Gives the paths that were packed. */
export async function installPacked(folder: string): Promise<readonly string[]> {
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", folder]);
  const [tarball] = JSON.parse(stdout) as { filename: string; files: { path: string }[] }[];
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "empty", private: true, type: "module" }));
  const options = ["--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"];
  await run("npm", ["install", ...options, join(folder, tarball?.filename ?? "")], { cwd: folder });
  return tarball?.files.map(({ path }) => path) ?? [];
}
