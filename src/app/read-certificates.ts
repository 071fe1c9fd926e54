import { readFile } from "node:fs/promises";
import { ConfigError } from "../config/config-error.ts";
import type { UpstreamTls } from "../config/config.ts";

/** The certificates themselves in place of their files' names. */
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
