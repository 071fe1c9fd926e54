import { ConfigError } from "../config/config-error.ts";
import type { Format } from "../../text/formats/format.ts";
import { requireFormat } from "../../text/formats/known.ts";
import { FormatError, readFormat } from "../../text/formats/read-format.ts";

/**
 * The format that a configuration names or describes. Throws `ConfigError`: it lists the names that there are, or says what is wrong
 * with the description and where.
 */
export function formatOf(value: string | Readonly<Record<string, unknown>>): Format {
  return typeof value === "string" ? named(value) : described(value);
}

function named(name: string): Format {
  try {
    return requireFormat(name);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ConfigError([{ path: ["toolFormat"], message: error.message }], undefined, { cause: error });
  }
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
