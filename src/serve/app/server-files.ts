import type { KeyConfig } from "../config/keys-schema.ts";
import type { Price } from "../config/prices-schema.ts";
import type { Config } from "../config/schema.ts";
import type { LaterKeys } from "../server/keys/key-ring.ts";
import type { ServerCertificate } from "../server/listen.ts";
import type { Runtime } from "./runtime.ts";

/** The contents of files that the configuration names; read at the start and at each reload. */
export interface ServerFiles extends ClientFiles {
  readonly certificate: ServerCertificate | undefined;
}

/** What concerns clients. */
export interface ClientFiles {
  /** Of the file and of the configuration. */
  readonly keys: readonly KeyConfig[];
  /** Those that are created while the server runs. */
  readonly later?: LaterKeys;
  /** Of the file of prices. */
  readonly prices: ReadonlyMap<string, Price>;
}

/** Throws `ConfigError` for what is wrong in a file. */
export async function readServerFiles(config: Config, runtime: Runtime): Promise<ServerFiles> {
  const { readServerCertificate } = await runtime.certificates();
  return { ...(await clientFilesOf(config, runtime)), certificate: await readServerCertificate(config) };
}

/** Throws `ConfigError` for mistakes in the files of keys and of prices. */
export async function clientFilesOf({ keys, keysFile, pricesFile }: Config, runtime: Runtime): Promise<ClientFiles> {
  if (keysFile === undefined && pricesFile === undefined) return { keys, prices: new Map() };
  const { readKeysFile, readPriceFile } = await runtime.clientFiles();
  return {
    keys: keysFile === undefined ? keys : [...keys, ...(await readKeysFile(keysFile, process.env))],
    prices: pricesFile === undefined ? new Map() : await readPriceFile(pricesFile),
  };
}
