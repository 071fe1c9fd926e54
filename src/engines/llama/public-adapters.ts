import { basename } from "node:path";
import type { ModelAdapter } from "../../wire/core/engine.ts";
import type { LoraAdapter } from "./options.ts";

/** A model's adapters for clients: without the paths of their files. */
export function publicAdapters(adapters: readonly LoraAdapter[]): readonly ModelAdapter[] {
  return adapters.map(({ path, scale = 1 }, id) => ({ id, file: basename(path), scale }));
}
