import type { Format } from "./format.ts";
import { hermes } from "./known/hermes.ts";
import { plainText } from "./plain-text.ts";

/** All formats that are known, by their id. */
export const knownFormats: readonly Format[] = [plainText, hermes];

/** The format of this name; undefined: unknown. */
export function formatNamed(name: string): Format | undefined {
  return knownFormats.find((format) => format.id === name);
}
