import type { KeyConfig } from "../config/keys-schema.ts";
import type { Config } from "../config/schema.ts";
import type { ServerCertificate } from "../server/listen.ts";
import { keysOf } from "./keys-of-config.ts";

/** What a server reads from files that its configuration names, when it starts and when it reads its configuration again. */
export interface ServerFiles {
  /** Those of the configuration, too. */
  readonly keys: readonly KeyConfig[];
  readonly certificate: ServerCertificate | undefined;
}

/** Throws `ConfigError` for what is wrong in a file. */
export async function readServerFiles(config: Config): Promise<ServerFiles> {
  const { readServerCertificate } = await import("./server-certificate.ts");
  return { keys: await keysOf(config), certificate: await readServerCertificate(config) };
}
