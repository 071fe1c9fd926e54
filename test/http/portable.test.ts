import { existsSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import * as standIns from "../../src/needs-node.ts";

/** Packages that need Node. */
const nodeOnly = new Set(["undici", "pino", "jiti", "node-llama-cpp", "commander"]);

function needsNode(name: string): boolean {
  return name.startsWith("node:") || builtinModules.includes(name) || nodeOnly.has(name);
}

/** What bundlers for the web put in the place of a file: another one, or nothing. */
const { browser } = JSON.parse(readFileSync("package.json", "utf8")) as { browser: Record<string, string | false> };
const sourceOf = (built: string): string => built.replace("./dist/", "src/").replace(/\.js$/, ".ts");
const replaced = new Map(
  Object.entries(browser).map(([file, by]) => [sourceOf(file), by === false ? by : sourceOf(by)]),
);

/**
 * The modules that `file` brings with it, and what outside of src/ each of them names. `import()` brings nothing until it runs.
 * `bundled`: all that a bundle for the web holds, what is imported later and the replacements included.
 */
function brings(
  file: string,
  bundled = false,
  seen: Map<string, string[]> = new Map<string, string[]>(),
): Map<string, string[]> {
  const other = bundled ? replaced.get(file) : undefined;
  if (other === false || seen.has(file)) return seen;
  if (other !== undefined) return brings(other, bundled, seen);
  const packages: string[] = [];
  seen.set(file, packages);
  const text = readFileSync(file, "utf8");
  for (const [statement, specifier = ""] of text.matchAll(
    /^(?:import|export)\b[^;]*?from "([^"]+)";|^import "[^"]+";/gm,
  )) {
    if (/^(?:import|export) type\b/.test(statement)) continue;
    if (specifier.startsWith(".")) brings(join(dirname(file), specifier), bundled, seen);
    else packages.push(specifier);
  }
  if (bundled) {
    for (const [, specifier = ""] of text.matchAll(/\bimport\("([^"]+)"\)/g)) {
      if (specifier.startsWith(".")) brings(join(dirname(file), specifier), bundled, seen);
      else packages.push(specifier);
    }
  }
  return seen;
}

test.each(["src/index.ts", "src/app/create-handler.ts", "src/app/open-program-model.ts"])(
  "%s brings no Node built-in with it: createHandler().fetch runs where there are none",
  (file) => {
    const modules = brings(file);
    expect(modules.size).toBeGreaterThan(20);
    for (const [module, packages] of modules) {
      expect(packages.filter(needsNode), module).toEqual([]);
    }
  },
);

test("what package.json replaces for the web is there, and so is what it puts in its place", () => {
  for (const [file, by] of replaced) {
    expect(existsSync(file), file).toBe(true);
    if (by !== false) expect(existsSync(by), by).toBe(true);
    // Nothing is replaced by nothing: what is called there would be told as "is not a function".
    expect(by, file).not.toBe(false);
  }
});

test("what needs Node says so, under the names that are imported", () => {
  const imported = [...brings("src/index.ts", true).keys()]
    .flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/\{ (\w+) \} = await import\("(\.[^"]+)"\)/g)].map(
        ([, name = "", specifier = ""]) => [name, join(dirname(file), specifier)] as const,
      ),
    )
    .filter(([, file]) => replaced.get(file) === "src/needs-node.ts")
    .map(([name]) => name);
  expect(imported).toEqual(expect.arrayContaining(["openLocalModels", "openProgramEngine", "openDownloads"]));
  for (const name of imported) expect(Object.keys(standIns), name).toContain(name);
  for (const [name, stub] of Object.entries(standIns)) {
    expect(stub, name).toThrow(/ needs Node: this is a bundle for the web\. .+\.$/);
  }
});

test.each(["src/index.ts", "src/app/create-handler.ts"])(
  "a bundle of %s for the web holds no Node built-in at all, upstreams and programs included",
  (file) => {
    const modules = brings(file, true);
    expect([...modules.keys()]).toContain("src/engines/upstream/fetch-transport.ts");
    expect([...modules.keys()]).toContain("src/engines/program/program-engine.ts");
    for (const [module, packages] of modules) expect(packages.filter(needsNode), module).toEqual([]);
  },
);
