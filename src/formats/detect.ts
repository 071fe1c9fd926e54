import type { Format } from "./format.ts";
import { knownFormats } from "./known.ts";
import { plainText } from "./plain-text.ts";

/** The format that a chat template writes, by its markers; plain text when it has none that is known. */
export function detectFormat(templateSource: string): Format {
  const has = (part: string): boolean => templateSource.includes(part);
  return (
    knownFormats.find(({ detect }) => detect && detect.all.every(has) && !(detect.none ?? []).some(has)) ?? plainText
  );
}
