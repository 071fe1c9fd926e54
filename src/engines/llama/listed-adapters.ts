import { basename } from "node:path";
import type { ModelAdapter } from "../../core/engine.ts";
import type { LoraAdapter } from "./options.ts";

/** What clients are told of a model's adapters: their files' names, but not where they are. */
export function listedAdapters(adapters: readonly LoraAdapter[]): readonly ModelAdapter[] {
  return adapters.map(({ path, scale = 1 }, id) => ({ id, file: basename(path), scale }));
}
