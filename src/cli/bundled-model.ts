import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { LocalModel } from "../config/config.ts";

/** The demo model that comes with the package. Throws when this installation has none. */
export function bundledModel(): LocalModel {
  const folder = join(dirname(createRequire(import.meta.url).resolve("truewire/package.json")), "models/demo");
  const file = existsSync(folder) ? readdirSync(folder).find((name) => name.endsWith(".gguf")) : undefined;
  if (file === undefined) {
    throw new Error(
      "No demo model is installed; say what to serve: truewire serve model.gguf (or a URL, or a program).",
    );
  }
  return { kind: "local", path: join(folder, file), name: "demo" };
}
