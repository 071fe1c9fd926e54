import type { KeyConfig } from "../config/keys-schema.ts";
import type { Config } from "../config/schema.ts";

/** The keys with hashes that a configuration has, and those of its file, as it is now. Throws `ConfigError` for what is wrong there. */
export async function keysOf({ keys, keysFile }: Config): Promise<readonly KeyConfig[]> {
  if (keysFile === undefined) return keys;
  const { readKeysFile } = await import("../config/read-keys-file.ts");
  return [...keys, ...(await readKeysFile(keysFile, process.env))];
}
