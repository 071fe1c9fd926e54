import { randomBytes } from "node:crypto";
import { stringify } from "yaml";
import { parseKeys } from "../config/keys-schema.ts";
import { hashOf } from "../server/keys/key-ring.ts";

/**
 * Prints a key that nobody has had before, and what the server is to know of it. The key goes to stdout, where a script can take it; the
 * rest, which is YAML, to stderr, so that it can be added to a file. Throws `ConfigError` for an invalid name.
 */
export async function newKey(name: string): Promise<void> {
  // 256 bits: a hash of it tells nothing, so it needs no salt and no slow hashing.
  const key = `tw-${randomBytes(32).toString("base64url")}`;
  const entry = { name, hash: `sha256:${await hashOf(key)}` };
  parseKeys([entry]);
  console.log(key);
  console.error(
    `# The key of ${name} is shown this once. The server knows it by its hash: add this to keys, or to the keys file.`,
  );
  console.error(stringify([entry]).trimEnd());
}
