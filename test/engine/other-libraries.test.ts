import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { libraryFolders } from "../../src/engines/llama/libraries/library-folders.ts";
import type { openLlamaEngine as OpenLlamaEngine } from "../../src/engines/llama/llama-engine.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";

/** The libraries that are installed, and the name of their package's folder. */
const [installed] = libraryFolders(false);
const source = installed?.folder ?? "";
const name = source.split(/[\\/]/).at(-1) ?? "";

// Their names and their format are Linux's here.
const isLinux = process.platform === "linux" && installed !== undefined;
if (!isLinux) console.log("skipped: libraries are spoilt as files of Linux");

/** A copy of this build, with libraries of its own. */
let folder: string;
let libraries: string;
let openLlamaEngine: typeof OpenLlamaEngine;
beforeAll(async () => {
  if (!isLinux) return;
  folder = realpathSync(mkdtempSync(join(tmpdir(), "truewire-")));
  const modules = join(folder, "node_modules");
  libraries = join(modules, "@node-llama-cpp", name, "bins", name);
  mkdirSync(join(modules, "node-llama-cpp"), { recursive: true });
  mkdirSync(libraries, { recursive: true });
  for (const made of ["node-llama-cpp", join("@node-llama-cpp", name)])
    writeFileSync(join(modules, made, "package.json"), "{}");
  for (const other of readdirSync("node_modules"))
    if (!/node-llama-cpp|^\./.test(other))
      symlinkSync(resolve("node_modules", other), join(modules, other), "junction");
  cpSync(process.env.TRUEWIRE_DIST ?? "dist", join(folder, "dist"), { recursive: true });
  cpSync("package.json", join(folder, "package.json"));
  writeProgrammedModel(join(folder, "programmed.gguf"));
  const built = join(folder, "dist/engines/llama/llama-engine.js");
  ({ openLlamaEngine } = (await import(pathToFileURL(built).href)) as { openLlamaEngine: typeof OpenLlamaEngine });
});
afterAll(() => {
  if (isLinux) rmSync(folder, { recursive: true, force: true });
});

/** Opens a model with libraries that were changed so; how that fails. */
async function failure(spoil: () => void): Promise<string> {
  rmSync(libraries, { recursive: true });
  mkdirSync(libraries);
  // Of those for single families of processors, what runs on each.
  for (const file of readdirSync(source))
    if (/^lib(llama|ggml)(-base|-cpu-x64|-cpu-armv8\.0_1)?(\.v[\d.]+)?\.so$/.test(file))
      cpSync(join(source, file), join(libraries, file));
  spoil();
  const model = join(folder, "programmed.gguf");
  const engine = await openLlamaEngine({ model, threads: 1, gpu: "off", contextSize: 512 }).catch(
    (error: unknown) => error as Error,
  );
  if (!(engine instanceof Error)) {
    await engine.close(0);
    return "it opens";
  }
  expect(engine.name).toBe("ModelOpenError");
  return engine.message;
}

function library(kind: string): string {
  const file = readdirSync(libraries).find((entry) => new RegExp(`^lib${kind}(\\.v[\\d.]+)?\\.so$`).test(entry));
  if (file === undefined) throw new Error(`there is no ${kind}`);
  return join(libraries, file);
}

test.skipIf(!isLinux)("copied libraries are as good as installed ones", async () => {
  expect(await failure(() => {})).toBe("it opens");
});

const spoilt: readonly (readonly [what: string, sentence: string, spoil: () => void])[] = [
  [
    "libraries of another version",
    "the libraries are llama.cpp 0.6.1-dev, and 0.5.0 is needed",
    () => {
      const file = library("llama");
      const bytes = readFileSync(file);
      bytes.write("0.6.1", bytes.indexOf("0.5.0-dev"));
      writeFileSync(file, bytes);
    },
  ],
  [
    "a library without a function that is needed",
    "llama_version",
    () => cpSync(library("ggml-base"), library("llama")),
  ],
  ["a file that is no library", "cannot be used: ", () => writeFileSync(library("llama"), "I am a text.")],
  ["a folder without one of the libraries", "holds no library of the name llama", () => rmSync(library("llama"))],
  [
    "libraries without one that computes",
    "none of them computes on this machine's processor",
    () => {
      for (const file of readdirSync(libraries)) if (file.startsWith("libggml-cpu")) rmSync(join(libraries, file));
    },
  ],
];

test.skipIf(!isLinux).each(spoilt)("%s: one sentence at opening", async (_, sentence, spoil) => {
  const message = await failure(spoil);
  expect(message).toContain(sentence);
  expect(message).toMatch(/^The libraries of llama\.cpp in .* cannot be used: [^\n]+ truewire libraries install$/);
});
