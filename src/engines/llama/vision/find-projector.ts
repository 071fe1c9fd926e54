import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** How a projector's file is named: `mmproj-F16.gguf`, `mmproj-model-f16.gguf`, `gemma-3-4b-mmproj.gguf`. */
const projectorName = /mmproj/i;
/** The last part of a file's name that says how its numbers are stored, or which part of a split file it is. */
const storage = /[-._](?:i?q\d\w*|f16|bf16|f32|fp16|\d{5}-of-\d{5}|ud|imatrix)$/i;

/**
 * Finds the projector of a model next to its file: in a folder with one model any projector, as llama.cpp does it for folders of models; in a
 * folder with several models the one with the model's name. Returns `null` if no file fits.
 */
export async function projectorNextTo(model: string): Promise<string | null> {
  const folder = dirname(model);
  const names = (await readdir(folder).catch(() => [])).filter((name) => /\.gguf$/i.test(name));
  const found = bestProjector(names, basename(model));
  return found === null ? null : join(folder, found);
}

/** The name under which a downloaded projector is found next to its model, in any quantization of the model. */
export function projectorFileName(model: string): string {
  return `${stemOf(model)}.mmproj.gguf`;
}

/** The best projector for a model among the files of a folder or of the model's own repository, by their names. */
export function bestProjector(
  names: readonly string[],
  model: string,
  { isRepository = false }: { readonly isRepository?: boolean } = {},
): string | null {
  const own = stemOf(model);
  const others = isRepository ? [] : names.filter((name) => !projectorName.test(name) && stemOf(name) !== own);
  const projectors = names.filter((name) => projectorName.test(name));
  const fitting = others.length === 0 ? projectors : projectors.filter((name) => stemOf(name) === own);
  return fitting.toSorted((one, other) => rank(one) - rank(other) || (one < other ? -1 : 1))[0] ?? null;
}

/** The name of a file without its folder, its ending, how it is stored, and "mmproj". */
function stemOf(name: string): string {
  let stem = basename(name).replace(/\.gguf$/i, "");
  while (storage.test(stem)) stem = stem.replace(storage, "");
  stem = stem.replace(/[-._]?mmproj[-._]?/i, "-").replace(/^[-._]+|[-._]+$/g, "");
  while (storage.test(stem)) stem = stem.replace(storage, "");
  return stem.toLowerCase();
}

/** F16 first, which is exact enough and runs everywhere. */
function rank(name: string): number {
  return ["f16", "bf16", "q8_0", "f32"].findIndex((type) => new RegExp(`[-._]${type}\\b`, "i").test(name)) >>> 0;
}
