import type { KeyConfig } from "../config/keys-schema.ts";
import type { Config } from "../config/schema.ts";
import type { ServerCertificate } from "../server/listen.ts";

/** The contents of files that the configuration names; read at the start and at each reload. */
export interface ServerFiles {
  /** Of the file and of the configuration. */
  readonly keys: readonly KeyConfig[];
  readonly certificate: ServerCertificate | undefined;
}

/** Throws `ConfigError` for what is wrong in a file. */
export async function readServerFiles(config: Config): Promise<ServerFiles> {
  const { readServerCertificate } = await import("./certificates.ts");
  return { keys: await keysOf(config), certificate: await readServerCertificate(config) };
}

/** Returns the keys with hashes of a configuration and of its file of keys. Throws `ConfigError` for mistakes in the file. */
export async function keysOf({ keys, keysFile }: Config): Promise<readonly KeyConfig[]> {
  if (keysFile === undefined) return keys;
  const { readKeysFile } = await import("../config/read-keys-file.ts");
  return [...keys, ...(await readKeysFile(keysFile, process.env))];
}
