import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { waitMs } from "./hang.ts";

/**
 * The folder `node_modules` of a package that is too large to be a dependency, installed once into `.cache/npm`; undefined, with one line
 * that says why, where the registry cannot be reached. `spec`: name and exact version.
 */
export function npmPackage(spec: string): string | undefined {
  const cache = resolve(".cache/npm");
  const folder = join(cache, spec.replaceAll("/", "-"));
  const modules = join(folder, "node_modules");
  if (existsSync(modules)) return modules;
  mkdirSync(cache, { recursive: true });
  const making = mkdtempSync(join(cache, "making-"));
  try {
    const options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", making];
    execFileSync("npm", ["install", ...options, spec], { stdio: "ignore", timeout: waitMs });
    // Whole or not at all: what was cut off half-way has another name.
    rmSync(folder, { recursive: true, force: true });
    renameSync(making, folder);
    return modules;
  } catch {
    rmSync(making, { recursive: true, force: true });
    console.log(`skipped: ${spec} cannot be had from the npm registry`);
    return undefined;
  }
}
