import { ConfigError } from "../config/config-error.ts";
import type { Format } from "../formats/format.ts";
import { formatNamed, knownFormats } from "../formats/known.ts";
import { FormatError, readFormat } from "../formats/read-format.ts";

/**
 * The format that a configuration names or describes. Throws `ConfigError`: it lists the names that there are, or says what is wrong
 * with the description and where.
 */
export function formatOf(value: string | Readonly<Record<string, unknown>>): Format {
  if (typeof value !== "string") return described(value);
  const format = formatNamed(value);
  if (format) return format;
  const known = knownFormats.map(({ id }) => id).join(", ");
  throw new ConfigError([{ path: ["toolFormat"], message: `"${value}" is not known; known are ${known}` }]);
}

function described(value: Readonly<Record<string, unknown>>): Format {
  try {
    return readFormat(value);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    const problems = error.problems.map(({ path, message }) => ({
      path: ["toolFormat", ...path.filter((part) => typeof part !== "symbol")],
      message,
    }));
    throw new ConfigError(problems, undefined, { cause: error });
  }
}
