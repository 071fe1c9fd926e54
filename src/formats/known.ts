import type { Format } from "./format.ts";
import { generalFormats } from "./known/general-formats.ts";
import { namedFormats } from "./known/named-formats.ts";
import { objectFormats } from "./known/object-formats.ts";
import { reasoningFormats } from "./known/reasoning-formats.ts";
import { routedFormats } from "./known/routed-formats.ts";
import { taggedFormats } from "./known/tagged-formats.ts";
import { plainText } from "./plain-text.ts";

/** All formats that are known. */
export const knownFormats: readonly Format[] = [
  ...routedFormats,
  ...taggedFormats,
  ...namedFormats,
  ...objectFormats,
  ...generalFormats,
  ...reasoningFormats,
  plainText,
];

const byName = new Map(knownFormats.map((format) => [format.id, format]));
/** Further names of the same formats. */
const aliases: Readonly<Record<string, string>> = {
  "reasoning-gpt-oss": "gpt-oss",
  "reasoning-think": "reasoning-think-tags",
};

/** The format of this name; undefined: there is none. */
export function formatNamed(name: string): Format | undefined {
  return byName.get(Object.hasOwn(aliases, name) ? (aliases[name] ?? name) : name);
}

/** The same, where there must be one. Throws a RangeError that lists the names. */
export function requireFormat(name: string): Format {
  const format = formatNamed(name);
  if (format) return format;
  const known = knownFormats.map(({ id }) => id).join(", ");
  throw new RangeError(`format "${name}" is not known; known are ${known}`);
}
