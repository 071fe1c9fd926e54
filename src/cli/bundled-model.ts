import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { LocalModel } from "../config/config.ts";

/** The demo model that comes with the package. Throws when this installation has none. */
export function bundledModel(): LocalModel {
  const folder = join(dirname(createRequire(import.meta.url).resolve("truewire/package.json")), "models/demo");
  const file = existsSync(folder) ? readdirSync(folder).find((name) => name.endsWith(".gguf")) : undefined;
  if (file === undefined) {
    throw new Error("This installation has no demo model. Name what to serve, for example: truewire serve model.gguf");
  }
  // A model of this size often does not end its strings or its reasoning.
  return {
    kind: "local",
    path: join(folder, file),
    name: "demo",
    defaults: { maxStringTokens: 100, maxReasoningTokens: 200 },
  };
}
