import { extname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

type Module = Readonly<Record<string, unknown>>;

/** Imports a user's module: TypeScript with jiti, since Node 20 does not strip types. Rejects with the module's own error. */
export async function importModule(path: string): Promise<Module> {
  if ([".ts", ".mts", ".cts", ".tsx"].includes(extname(path))) return importThroughJiti(path);
  try {
    return (await import(pathToFileURL(path).href)) as Module;
  } catch (error) {
    if (!needsTruewire(error)) throw error;
    return importThroughJiti(path);
  }
}

/** A program that imports "truewire" gets the running copy: with `npx truewire serve` or a global installation there is no other. */
async function importThroughJiti(path: string): Promise<Module> {
  const { createJiti } = await import("jiti");
  const entry = (name: string): URL => new URL(`../../${name}${extname(import.meta.url)}`, import.meta.url);
  const truewire: unknown = await import(entry("index").href);
  const jiti = createJiti(pathToFileURL(path).href, {
    moduleCache: false,
    virtualModules: { truewire },
    // Few programs need it, so it is not loaded for the others.
    alias: { "truewire/server": fileURLToPath(entry("server")) },
  });
  return jiti.import<Module>(path);
}

function needsTruewire(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return code === "ERR_MODULE_NOT_FOUND" && String(message).includes("'truewire'");
}
