import { stat } from "node:fs/promises";
import { ModelOpenError } from "../model-open-error.ts";
import type { LoraAdapter } from "../options.ts";

/** Total size of the adapters' files in bytes. Throws `ModelOpenError` if one cannot be read. */
export async function adapterBytes(adapters: readonly LoraAdapter[] = []): Promise<number> {
  let bytes = 0;
  for (const { path } of adapters) {
    try {
      bytes += (await stat(path)).size;
    } catch (cause) {
      const missing = cause instanceof Error && "code" in cause && cause.code === "ENOENT";
      const why = missing ? "does not exist" : `cannot be read: ${String(cause)}`;
      throw new ModelOpenError("no-such-file", `The adapter ${path} ${why}.`, cause);
    }
  }
  return bytes;
}
