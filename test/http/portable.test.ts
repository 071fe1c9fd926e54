import { readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { createFetchHandler } from "../../src/fetch.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";

/** Packages that need Node. */
const nodeOnly = new Set(["undici", "jiti", "node-llama-cpp", "commander"]);

function needsNode(name: string): boolean {
  return name.startsWith("node:") || builtinModules.includes(name) || nodeOnly.has(name);
}

/** The modules that `file` imports, also by `import()`, and the packages that each of them imports. */
function importsOf(file: string, seen: Map<string, string[]> = new Map<string, string[]>()): Map<string, string[]> {
  if (seen.has(file)) return seen;
  const packages: string[] = [];
  seen.set(file, packages);
  const text = readFileSync(file, "utf8");
  const statements = text.matchAll(
    /^(?:import|export)\b[^;]*?from "([^"]+)";|^import "([^"]+)";|\bimport\("([^"]+)"\)/gm,
  );
  for (const [statement, from, alone, later] of statements) {
    if (/^(?:import|export) type\b/.test(statement)) continue;
    const specifier = from ?? alone ?? later ?? "";
    if (specifier.startsWith(".")) importsOf(join(dirname(file), specifier), seen);
    else packages.push(specifier);
  }
  return seen;
}

test.each([
  ["src/index.ts", "src/judge/library/read-stream.ts"],
  ["src/fetch.ts", "src/engines/upstream/fetch-transport.ts"],
  ["src/rules.ts", "src/judge/check/rules/every-rule.ts"],
])("%s imports nothing that needs Node, also later: it runs in browsers and Workers", (file, part) => {
  const modules = importsOf(file);
  expect([...modules.keys()]).toContain(part);
  for (const [module, packages] of modules) expect(packages.filter(needsNode), module).toEqual([]);
});

test("the entry of the server is not taken for one of them", () => {
  expect([...importsOf("src/server.ts").values()].flat().filter(needsNode)).toContain("undici");
});

test("what needs Node says so in one sentence", async () => {
  const model = { kind: "upstream", name: "up", url: "http://127.0.0.1:9/v1", models: ["m"] } as const;
  const configs: readonly TruewireConfig[] = [
    { models: [{ kind: "local", path: "model.gguf" }] },
    { models: [{ kind: "program", program: "./program.ts" }] },
    { models: [{ ...model, tls: { ca: "ca.pem" } }] },
    { models: [model], keysFile: "keys.yaml" },
    { models: [model], store: { at: "./folder" } },
    { models: [model], sharedLimits: "redis://127.0.0.1:9" },
    { models: [model], metrics: "on" },
  ];
  for (const config of configs) {
    const handler = createFetchHandler(config);
    await expect(handler.ready(), JSON.stringify(config)).rejects.toThrow(/ needs? Node\. .+\.$/);
    await handler.close(0);
  }
});
