import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { isNightly } from "../support/runs.ts";

/** Each built file, and when it was written. */
function written(): Record<string, number> {
  const files = readdirSync("dist", { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map(({ parentPath, name }) => [join(parentPath, name), statSync(join(parentPath, name)).mtimeMs]),
  );
}

// Each build wrote all files again, and a server that started meanwhile (in another test) read half of one: "Unexpected end of input".
if (!isNightly) console.log("skipped: the build runs a second time at night only (TRUEWIRE_RUNS)");
test.runIf(isNightly)("building what is built writes nothing", () => {
  const before = written();
  execFileSync("npm", ["run", "--silent", "build"], { shell: process.platform === "win32" });
  expect(Object.keys(before)).toContain(join("dist", "cli", "main.js"));
  expect(written()).toEqual(before);
});

const isWindows = process.platform === "win32";
if (isWindows) console.log("skipped: Windows has no executable files without an extension");

// npm made the command executable when it was linked; after the next build from nothing, it was "Permission denied".
test.skipIf(isWindows)("npm link puts truewire on the PATH, and every build leaves it executable", () => {
  expect(statSync("dist/cli/main.js").mode & 0o111).toBe(0o111);
  const prefix = mkdtempSync(join(tmpdir(), "truewire-link-"));
  try {
    execFileSync("npm", ["link"], { env: { ...process.env, npm_config_prefix: prefix }, stdio: "ignore" });
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    expect(execFileSync(join(prefix, "bin/truewire"), ["--version"], { encoding: "utf8" })).toBe(`${version}\n`);
  } finally {
    rmSync(prefix, { recursive: true, force: true });
  }
});

// @noble/hashes was not among the packages of the bundle: every start found and read six files of it.
test("what a server and a model's process import at every start is in the bundle", () => {
  const entries = ["cli/serve-action.js", "serve/app/worker-main.js", "engines/llama/process/main.js"];
  const files = new Set(entries.map((entry) => join("dist", entry)));
  const others: string[] = [];
  for (const file of files) {
    for (const [, name = ""] of readFileSync(file, "utf8").matchAll(
      /(?:^(?:import|export)\b[^"';(]*|\brequire\(|\bload\()"([^"]+)"\)?;$/gm,
    )) {
      if (name.endsWith(".script.js")) files.add(join("dist", "chunks", name));
      else if (name.startsWith(".")) files.add(join(dirname(file), name));
      else if (!isBuiltin(name)) others.push(name);
    }
  }
  const scripts = [...files].filter((file) => file.endsWith(".script.js"));
  expect(scripts.map((file) => statSync(file).size > 500_000)).toEqual([true, true]);
  expect(others).toEqual([]);
});
