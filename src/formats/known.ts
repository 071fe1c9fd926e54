import type { Format } from "./format.ts";
import { generalFormats } from "./known/general-formats.ts";
import { namedFormats } from "./known/named-formats.ts";
import { objectFormats } from "./known/object-formats.ts";
import { reasoningFormats } from "./known/reasoning-formats.ts";
import { routedFormats } from "./known/routed-formats.ts";
import { taggedFormats } from "./known/tagged-formats.ts";
import { plainText } from "./plain-text.ts";

/** All formats that are known, each once. */
export const knownFormats: readonly Format[] = [
  ...routedFormats,
  ...taggedFormats,
  ...namedFormats,
  ...objectFormats,
  ...generalFormats,
  ...reasoningFormats,
  plainText,
];

const byName = new Map(knownFormats.flatMap((format) => namesOf(format).map((name) => [name, format] as const)));

/** Every name of a known format, its aliases included. */
export const knownNames: readonly string[] = [...byName.keys()];

/** The format of this name, or with this alias; undefined: there is none. */
export function formatNamed(name: string): Format | undefined {
  return byName.get(name);
}

/** The same, where there must be one. Throws a RangeError that lists the names. */
export function requireFormat(name: string): Format {
  const format = formatNamed(name);
  if (format) return format;
  throw new RangeError(`format "${name}" is not known; known are ${knownNames.join(", ")}`);
}

function namesOf({ id, aliases = [] }: Format): readonly string[] {
  return [id, ...aliases];
}
