import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { ConfigError } from "../config/config-error.ts";
import type { Config } from "../config/schema.ts";
import type { ServerCertificate } from "../server/listen.ts";

/** The server's certificate and its key; undefined where it has none. Throws `ConfigError` where they cannot be read, or do not belong together. */
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
