import type { KeyConfig } from "../config/keys-schema.ts";
import type { Config } from "../config/schema.ts";
import type { ServerCertificate } from "../server/listen.ts";
import type { Runtime } from "./runtime.ts";

/** The contents of files that the configuration names; read at the start and at each reload. */
export interface ServerFiles {
  /** Of the file and of the configuration. */
  readonly keys: readonly KeyConfig[];
  readonly certificate: ServerCertificate | undefined;
}

/** Throws `ConfigError` for what is wrong in a file. */
export async function readServerFiles(config: Config, runtime: Runtime): Promise<ServerFiles> {
  const { readServerCertificate } = await runtime.certificates();
  return { keys: await keysOf(config, runtime), certificate: await readServerCertificate(config) };
}

/** Returns the keys with hashes of a configuration and of its file of keys. Throws `ConfigError` for mistakes in the file. */
export async function keysOf({ keys, keysFile }: Config, runtime: Runtime): Promise<readonly KeyConfig[]> {
  if (keysFile === undefined) return keys;
  const { readKeysFile } = await runtime.keysFile();
  return [...keys, ...(await readKeysFile(keysFile, process.env))];
}
