import { parseKeys } from "./keys-schema.ts";
import type { KeyConfig } from "./keys-schema.ts";
import { readYamlFile } from "./read-yaml-file.ts";

/** Reads a file of keys: a YAML list of what `keys` of the configuration holds. Throws `ConfigError`, each line with `file:line:`. */
export async function readKeysFile(
  file: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<readonly KeyConfig[]> {
  // A file without anything in it is a list without keys.
  const value = await readYamlFile(file, environment, (read) => void parseKeys(read ?? []));
  return parseKeys(value ?? []);
}
