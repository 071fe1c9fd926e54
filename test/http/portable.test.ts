import { readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

/** Packages that need Node. */
const nodeOnly = new Set(["undici", "pino", "jiti", "node-llama-cpp", "commander"]);

/** The modules that `file` brings with it, and what outside of src/ each of them names. `import()` brings nothing until it runs. */
function brings(file: string, seen: Map<string, string[]> = new Map<string, string[]>()): Map<string, string[]> {
  if (seen.has(file)) return seen;
  const packages: string[] = [];
  seen.set(file, packages);
  const text = readFileSync(file, "utf8");
  for (const [statement, specifier = ""] of text.matchAll(
    /^(?:import|export)\b[^;]*?from "([^"]+)";|^import "[^"]+";/gm,
  )) {
    if (/^(?:import|export) type\b/.test(statement)) continue;
    if (specifier.startsWith(".")) brings(join(dirname(file), specifier), seen);
    else packages.push(specifier);
  }
  return seen;
}

test.each(["src/index.ts", "src/create-handler.ts", "src/open-program-model.ts"])(
  "%s brings no Node built-in with it: createHandler().fetch runs where there are none",
  (file) => {
    const modules = brings(file);
    expect(modules.size).toBeGreaterThan(20);
    for (const [module, packages] of modules) {
      const wrong = packages.filter(
        (name) => name.startsWith("node:") || builtinModules.includes(name) || nodeOnly.has(name),
      );
      expect(wrong, module).toEqual([]);
    }
  },
);
