import { everyCodePoint } from "./code-points.ts";
import { chars, isNever, lengths, repeat, type Expression } from "./expression.ts";
import type { SchemaReader } from "./flatten-schema.ts";
import { RegexError } from "./regex-syntax.ts";
import { regexExpression } from "./regex-to-gbnf.ts";
import type { StringLimits } from "./schema-shape.ts";
import { formatExpression } from "./string-formats.ts";
import type { StringSyntax } from "./strings.ts";

/** The strings within limits, as a syntax writes them. `path` is where they stand, for reports. */
export function stringExpression(
  reader: SchemaReader,
  syntax: StringSyntax,
  limits: StringLimits,
  path: string,
): Expression {
  const characters = patternCharacters(reader, limits, path);
  if (characters === null) {
    return limits.min === 0 && limits.max === null ? syntax.any : syntax.ofLength(limits.min, limits.max);
  }
  const written = syntax.of(characters);
  if (!isNever(written) || isNever(characters)) return written;
  const [at] = [...limits.patterns, ...limits.formats];
  reader.report(at?.path ?? path, limits.patterns.length > 0 ? "pattern" : "format");
  return syntax.any;
}

/** The characters of the strings within limits; `least`: at least so many, whatever the limits say. */
export function stringCharacters(reader: SchemaReader, limits: StringLimits, path: string, least: number): Expression {
  return (
    patternCharacters(reader, limits, path) ?? repeat(chars(everyCodePoint), Math.max(least, limits.min), limits.max)
  );
}

/** The characters of the strings that a pattern or a format asks for; null where there is none. */
function patternCharacters(reader: SchemaReader, limits: StringLimits, path: string): Expression | null {
  const candidates: { readonly characters: Expression; readonly path: string; readonly keyword: string }[] = [];
  for (const { pattern, path } of limits.patterns) {
    const characters = translated(pattern);
    if (characters === null) reader.report(path, "pattern");
    else candidates.push({ characters, path, keyword: "pattern" });
  }
  for (const { name, path } of limits.formats) {
    const characters = formatExpression(name);
    if (characters === null) reader.report(path, "format");
    else candidates.push({ characters, path, keyword: "format" });
  }
  const [first, ...others] = candidates;
  for (const other of others) reader.report(other.path, other.keyword);
  return first === undefined ? null : ofLength(reader, first.characters, limits, path);
}

function translated(pattern: string): Expression | null {
  try {
    return regexExpression(pattern, "anywhere");
  } catch (error) {
    if (error instanceof RegexError) return null;
    throw error;
  }
}

/** Of the texts that `characters` matches, those of the right length, as far as that can be said. */
function ofLength(reader: SchemaReader, characters: Expression, { min, max }: StringLimits, path: string): Expression {
  const range = lengths(characters);
  if (range.min >= min && (max === null || (range.max !== null && range.max <= max))) return characters;
  // One class, repeated (`^[a-z]*$`): its count is the length.
  const item = characters.kind === "repeat" ? lengths(characters.item) : null;
  if (characters.kind === "repeat" && item?.min === 1 && item.max === 1) {
    const least = Math.max(min, characters.min);
    const most = max === null || characters.max === null ? (max ?? characters.max) : Math.min(max, characters.max);
    return repeat(characters.item, least, most);
  }
  if (range.min < min) reader.report(path, "minLength");
  if (max !== null && (range.max === null || range.max > max)) reader.report(path, "maxLength");
  return characters;
}
