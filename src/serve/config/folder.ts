import { closeSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { basename, join, relative } from "node:path";
import type { LocalModel } from "./model-schema.ts";

/** Folders of models have one for each author and one for each model, at most. */
const maxDepth = 3;

/** Whether a target of `truewire serve` is a folder. */
export function isFolder(target: string): boolean {
  return statSync(target, { throwIfNoEntry: false })?.isDirectory() === true;
}

/**
 * Returns the models of a folder of GGUF files and of the folders in it, to be loaded with their first request, in the order of their paths.
 * A model has the name of its file, or its path in the folder where several files have that name. Projectors
 * (`mmproj`), parts of a split file after the first, and files that do not begin as GGUF files do are left out. Throws an Error for a folder
 * without a model.
 */
export function modelsInFolder(folder: string): LocalModel[] {
  const files = filesIn(folder, maxDepth).filter(isModel).sort();
  if (files.length === 0)
    throw new Error(
      `The folder ${folder} has no model: expected GGUF files, such as ${join(folder, "model.gguf")}, in it or in its folders.`,
    );
  const names = files.map((file) => nameOf(basename(file)));
  return files.map((path, at) => {
    const name = names[at] ?? "";
    const isUnique = names.indexOf(name) === names.lastIndexOf(name);
    const full = nameOf(relative(folder, path).replaceAll("\\", "/"));
    return { kind: "local", path, name: isUnique ? name : full, load: "lazy" };
  });
}

function filesIn(folder: string, depth: number): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (name.startsWith(".")) return [];
    // A link may lead nowhere.
    const found = statSync(path, { throwIfNoEntry: false });
    if (found?.isDirectory() === true) return depth > 1 ? filesIn(path, depth - 1) : [];
    return found?.isFile() === true ? [path] : [];
  });
}

/** The parts of a split file are named `…-00001-of-00003.gguf` (llama.cpp, gguf-split). */
function nameOf(file: string): string {
  return file.replace(/(?:-\d{5}-of-\d{5})?\.gguf$/i, "");
}

function isModel(path: string): boolean {
  const name = basename(path);
  if (!/\.gguf$/i.test(name) || /mmproj/i.test(name)) return false;
  if (/-\d{5}-of-\d{5}\.gguf$/i.test(name) && !/-00001-of-\d{5}\.gguf$/i.test(name)) return false;
  const file = openSync(path, "r");
  try {
    const start = Buffer.alloc(4);
    return readSync(file, start) === 4 && start.toString("latin1") === "GGUF";
  } finally {
    closeSync(file);
  }
}
