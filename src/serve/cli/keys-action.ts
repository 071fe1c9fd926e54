import { randomBytes } from "node:crypto";
import { stringify } from "yaml";
import { parseKeys } from "../config/keys-schema.ts";
import { hashOf } from "../server/keys/key-ring.ts";

/**
 * Creates a random key. Prints the key to stdout, where a script can read it, and its entry for the configuration, as YAML, to stderr; with
 * `json`, both as one object to stdout. Throws `ConfigError` for an invalid name.
 */
export async function newKey(name: string, json: boolean): Promise<void> {
  // 256 random bits cannot be found from their hash, so the hash needs no salt and no slow function.
  const key = `tw-${randomBytes(32).toString("base64url")}`;
  const entry = { name, hash: `sha256:${await hashOf(key)}` };
  parseKeys([entry]);
  if (json) return console.log(JSON.stringify({ key, entry }));
  console.log(key);
  console.error(
    `# The key of ${name} is shown this once. The server knows it by its hash: add this to keys, or to the keys file.`,
  );
  console.error(stringify([entry]).trimEnd());
}
