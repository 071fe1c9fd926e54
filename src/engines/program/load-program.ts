import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Engine } from "../../generation/engine.ts";
import { isLanguageModel, languageModelProgram } from "./language-model.ts";
import type { Program } from "./program.ts";

/** What a module's default export turned out to be. */
export type LoadedProgram =
  /** `blocking`: a plain function or generator; it may compute for long without giving way. */
  | { readonly kind: "program"; readonly program: Program; readonly blocking: boolean }
  | { readonly kind: "engine"; readonly engine: Engine };

/** A module that cannot be served; `message` is one sentence for the user. */
export class ProgramLoadError extends Error {
  override readonly name = "ProgramLoadError";
}

/** Imports a module (TypeScript through jiti, since Node 20 strips no types) and classifies its default export. */
export async function loadProgram(path: string): Promise<LoadedProgram> {
  let value: unknown;
  try {
    value = await importDefault(path);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ProgramLoadError(`${path} could not be loaded: ${reason}`, { cause });
  }
  const loaded = classify(value);
  if (loaded === undefined) {
    throw new ProgramLoadError(
      `${path} needs a default export that is a function, an AI SDK language model or an engine; it is ${describe(value)}.`,
    );
  }
  return loaded;
}

export function classify(value: unknown): LoadedProgram | undefined {
  if (typeof value === "function") return { kind: "program", program: value as Program, blocking: isBlocking(value) };
  if (isLanguageModel(value)) return { kind: "program", program: languageModelProgram(value), blocking: false };
  if (isEngine(value)) return { kind: "engine", engine: value };
  return undefined;
}

async function importDefault(path: string): Promise<unknown> {
  if ([".ts", ".mts", ".cts", ".tsx"].includes(extname(path))) {
    const { createJiti } = await import("jiti");
    return createJiti(pathToFileURL(path).href, { moduleCache: false }).import(path, { default: true });
  }
  const module = (await import(pathToFileURL(path).href)) as { default?: unknown };
  return module.default;
}

/** Whether a function can run long without an `await`: by its kind, since that is all that can be known before it runs. */
function isBlocking(value: object): boolean {
  const kind = Object.prototype.toString.call(value);
  return kind !== "[object AsyncFunction]" && kind !== "[object AsyncGeneratorFunction]";
}

function isEngine(value: unknown): value is Engine {
  const engine = value as Partial<Engine> | null;
  return typeof engine === "object" && typeof engine?.generate === "function" && typeof engine.models === "function";
}

function describe(value: unknown): string {
  if (value === undefined) return "missing";
  return value === null ? "null" : typeof value === "object" ? "an object of another form" : `a ${typeof value}`;
}
