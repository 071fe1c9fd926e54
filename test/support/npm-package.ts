import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

/**
 * The folder `node_modules` of a package that is too large to be a dependency, installed once into `.cache/npm`; undefined, with one line
 * that says why, where the registry cannot be reached. `spec`: name and exact version.
 */
export function npmPackage(spec: string): string | undefined {
  const folder = resolve(".cache/npm", spec.replaceAll("/", "-"));
  const modules = join(folder, "node_modules");
  if (existsSync(modules)) return modules;
  mkdirSync(folder, { recursive: true });
  try {
    const options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder];
    execFileSync("npm", ["install", ...options, spec], { stdio: "ignore", timeout: 300_000 });
    return modules;
  } catch {
    rmSync(folder, { recursive: true, force: true });
    console.log(`skipped: ${spec} cannot be had from the npm registry`);
    return undefined;
  }
}
