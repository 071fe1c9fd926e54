import { larkKeyword } from "../../core/custom-tool.ts";
import { everyCodePoint, oneCodePoint } from "./code-points.ts";
import { chars, isNever, lengths, repeat, sequenceOf, type Expression } from "./expression.ts";
import type { SchemaReader } from "./flatten-schema.ts";
import type { Grammar } from "./grammar.ts";
import { larkExpression } from "./lark-to-expression.ts";
import { RegexError } from "./regex-syntax.ts";
import { regexExpression } from "./regex-to-gbnf.ts";
import { intersected } from "./regular-intersection.ts";
import type { StringLimits } from "./schema-shape.ts";
import { formatExpression } from "./string-formats.ts";
import type { StringSyntax } from "./strings.ts";

/** The strings within limits, as a syntax writes them. `path` is where they stand, for reports. */
export function stringExpression(
  { grammar, reader }: { readonly grammar: Grammar; readonly reader: SchemaReader },
  syntax: StringSyntax,
  limits: StringLimits,
  path: string,
): Expression {
  const { min, max } = limits;
  const [lark] = limits.grammars;
  if (lark !== undefined) {
    const written = larkString(grammar, syntax, lark.definition);
    if (!isNever(written)) return written;
    reader.report(lark.path, larkKeyword);
  }
  const held = described(reader, limits);
  const [first] = held;
  if (first === undefined) return min === 0 && max === null ? syntax.any : syntax.ofLength(min, max);
  const whole = held.length === 1 ? ofLength(first.characters, limits) : null;
  if (whole !== null) {
    const written = syntax.of(whole);
    if (!isNever(written) || isNever(whole)) return written;
    reader.report(first.path, first.keyword);
    return syntax.any;
  }
  const expressions = held.map(({ characters }) => characters);
  const both = intersected(grammar, { expressions, min, max }, (set) => syntax.spell(set));
  if (both !== null) return syntax.around(both);
  for (const other of held.slice(1)) reader.report(other.path, other.keyword);
  const range = lengths(first.characters);
  if (range.min < min) reader.report(path, "minLength");
  if (max !== null && (range.max === null || range.max > max)) reader.report(path, "maxLength");
  return syntax.of(first.characters);
}

/** The strings of a Lark grammar: rules of their own, in which each character is written as the syntax writes it. */
function larkString(grammar: Grammar, syntax: StringSyntax, definition: string): Expression {
  const key = JSON.stringify(syntax.spell(everyCodePoint));
  const write = (leaf: Leaf): Expression =>
    leaf.kind === "chars"
      ? syntax.spell(leaf.set)
      : sequenceOf([...leaf.text].map((c) => syntax.spell(oneCodePoint(c))));
  const characters = larkExpression(definition, grammar, { key, write });
  return isNever(characters) ? characters : syntax.around(characters);
}

type Leaf = Expression & { kind: "text" | "chars" };

/** The characters of the keys within limits, at least one. What cannot be said without rules of its own is reported. */
export function keyCharacters(reader: SchemaReader, limits: StringLimits, path: string): Expression {
  const [first, ...others] = described(reader, limits);
  if (first === undefined) return repeat(chars(everyCodePoint), Math.max(1, limits.min), limits.max);
  const whole = ofLength(first.characters, limits);
  if (whole === null || others.length > 0) reader.report(path, "propertyNames");
  return whole ?? first.characters;
}

interface Described {
  readonly characters: Expression;
  readonly path: string;
  readonly keyword: string;
}

/** What the patterns and formats of a string ask for; those that no grammar can be made of are reported. */
function described(reader: SchemaReader, limits: StringLimits): readonly Described[] {
  const patterns = limits.patterns.map(({ pattern, path }) => ({
    characters: translated(pattern),
    path,
    keyword: "pattern",
  }));
  const formats = limits.formats.map(({ name, path }) => ({
    characters: formatExpression(name),
    path,
    keyword: "format",
  }));
  return [...patterns, ...formats].flatMap(({ characters, path, keyword }) => {
    if (characters !== null) return [{ characters, path, keyword }];
    reader.report(path, keyword);
    return [];
  });
}

function translated(pattern: string): Expression | null {
  try {
    return regexExpression(pattern, "anywhere");
  } catch (error) {
    if (error instanceof RegexError) return null;
    throw error;
  }
}

/** Of the texts that `characters` matches, those of the right length, where that is simple to say. */
function ofLength(characters: Expression, { min, max }: StringLimits): Expression | null {
  const range = lengths(characters);
  if (range.min >= min && (max === null || (range.max !== null && range.max <= max))) return characters;
  // One class, repeated (`^[a-z]*$`): its count is the length.
  if (characters.kind !== "repeat") return null;
  const item = lengths(characters.item);
  if (item.min !== 1 || item.max !== 1) return null;
  const least = Math.max(min, characters.min);
  const most = max === null || characters.max === null ? (max ?? characters.max) : Math.min(max, characters.max);
  return repeat(characters.item, least, most);
}
