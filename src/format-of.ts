import { ConfigError } from "./config/config-error.ts";
import type { Format } from "./formats/format.ts";
import { formatNamed, knownFormats } from "./formats/known.ts";

/** The format that a configuration names. Throws `ConfigError` that lists those that there are. */
export function formatOf(name: string): Format {
  const format = formatNamed(name);
  if (format) return format;
  const known = knownFormats.map(({ id }) => id).join(", ");
  throw new ConfigError([{ path: ["toolFormat"], message: `"${name}" is not known; known are ${known}` }]);
}
