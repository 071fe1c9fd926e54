import { readFile, stat } from "node:fs/promises";
import { ConfigError } from "../config/config-error.ts";
import type { UpstreamModelConfig } from "../config/model-schema.ts";
import { createSecureContext } from "node:tls";
import type { Config } from "../config/schema.ts";
import type { ServerCertificate } from "../server/listen.ts";
import { parseKeys } from "../config/keys-schema.ts";
import type { KeyConfig } from "../config/keys-schema.ts";
import { parsePriceList } from "../config/prices-schema.ts";
import type { Price } from "../config/prices-schema.ts";

type UpstreamTls = NonNullable<UpstreamModelConfig["tls"]>;

/** Returns `tls` with the contents of the files instead of their names. */
export async function readCertificates(tls: UpstreamTls): Promise<UpstreamTls> {
  const text = async (member: "ca" | "cert" | "key"): Promise<string | undefined> => {
    const file = tls[member];
    if (file === undefined) return undefined;
    return readFile(file, "utf8").catch((cause: Error) => {
      throw new ConfigError([{ path: ["tls", member], message: cause.message }], undefined, { cause });
    });
  };
  const [ca, cert, key] = await Promise.all([text("ca"), text("cert"), text("key")]);
  return { ...tls, ca, cert, key };
}

/** Reads the server's certificate and key; `undefined` if none is configured. Throws `ConfigError` if they cannot be read or do not match. */
export async function readServerCertificate({
  tlsCert,
  tlsKey,
}: Pick<Config, "tlsCert" | "tlsKey">): Promise<ServerCertificate | undefined> {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  const [cert, key] = await Promise.all([readPem("tlsCert", tlsCert), readPem("tlsKey", tlsKey)]);
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `${tlsCert} and ${tlsKey} are not a certificate and its private key in PEM form: ${why}`;
    throw new ConfigError([{ path: ["tlsCert"], message }], undefined, { cause });
  }
  return { cert, key };
}

function readPem(member: "tlsCert" | "tlsKey", file: string): Promise<string> {
  return readFile(file, "utf8").catch((cause: Error) => {
    throw new ConfigError([{ path: [member], message: `cannot be read: ${cause.message}` }], undefined, { cause });
  });
}

/** In bytes: about ten times LiteLLM's list. */
const maxPriceFile = 32 * 1024 * 1024;

/** Reads a file in the form of LiteLLM's price list. Throws `ConfigError` with the file's name. */
export async function readPriceFile(file: string): Promise<ReadonlyMap<string, Price>> {
  try {
    const { size } = await stat(file);
    if (size > maxPriceFile) throw new Error(`it has ${size} bytes, and may have ${maxPriceFile}`);
    return parsePriceList(await readFile(file, "utf8"), file);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError([{ path: [], message: `cannot be read: ${(cause as Error).message}` }], file, { cause });
  }
}

/** Reads a file of keys: a YAML list of what `keys` of the configuration holds. Throws `ConfigError`, each line with `file:line:`. */
export async function readKeysFile(
  file: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<readonly KeyConfig[]> {
  // A file without anything in it is a list without keys.
  const { readYamlFile } = await import("../config/read-yaml-file.ts");
  const value = await readYamlFile(file, environment, (read) => void parseKeys(read ?? []));
  return parseKeys(value ?? []);
}
