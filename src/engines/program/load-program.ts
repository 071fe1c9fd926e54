import { extname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { classify, ProgramLoadError } from "./classify-program.ts";
import type { LoadedProgram } from "./classify-program.ts";

/** Imports a module (TypeScript with jiti, since Node 20 does not strip types) and classifies its default export. */
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

async function importDefault(path: string): Promise<unknown> {
  if ([".ts", ".mts", ".cts", ".tsx"].includes(extname(path))) return importThroughJiti(path);
  try {
    const module = (await import(pathToFileURL(path).href)) as { default?: unknown };
    return module.default;
  } catch (error) {
    if (!needsTruewire(error)) throw error;
    return importThroughJiti(path);
  }
}

/** A program that imports "truewire" gets the running copy: with `npx truewire serve` or a global installation there is no other. */
async function importThroughJiti(path: string): Promise<unknown> {
  const { createJiti } = await import("jiti");
  const entry = (name: string): URL => new URL(`../../${name}${extname(import.meta.url)}`, import.meta.url);
  const truewire: unknown = await import(entry("index").href);
  const jiti = createJiti(pathToFileURL(path).href, {
    moduleCache: false,
    virtualModules: { truewire },
    // Few programs need it, so it is not loaded for the others.
    alias: { "truewire/server": fileURLToPath(entry("server")) },
  });
  return jiti.import(path, { default: true });
}

function needsTruewire(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return code === "ERR_MODULE_NOT_FOUND" && String(message).includes("'truewire'");
}

function describe(value: unknown): string {
  if (value === undefined) return "missing";
  return value === null ? "null" : typeof value === "object" ? "an object of another form" : `a ${typeof value}`;
}
