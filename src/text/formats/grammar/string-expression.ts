import { larkKeyword } from "../../../wire/core/custom-tool.ts";
import { type CodePoints, includesCodePoint, everyCodePoint, oneCodePoint, union } from "./code-points.ts";
import {
  chars,
  choice,
  empty,
  type GrammarExpression,
  isNever,
  lengths,
  repeat,
  sequence,
  sequenceOf,
  literal,
} from "./expression.ts";
import type { SchemaReader } from "./schema-reader.ts";
import type { Grammar } from "./grammar.ts";
import { larkExpression } from "./lark-to-expression.ts";
import { RegexError } from "./regex-syntax.ts";
import { regexExpression } from "./regex-to-gbnf.ts";
import type { StringLimits } from "./schema-shape.ts";
import type { StringSyntax } from "./strings.ts";

/** The strings within limits, in the given syntax. `path`: their path, for reports. */
export function stringExpression(
  { grammar, reader }: { readonly grammar: Grammar; readonly reader: SchemaReader },
  syntax: StringSyntax,
  limits: StringLimits,
  path: string,
): GrammarExpression {
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
  const both = intersection(grammar, { expressions, min, max }, (set) => syntax.spell(set));
  if (both !== null) return syntax.around(both);
  for (const other of held.slice(1)) reader.report(other.path, other.keyword);
  const range = lengths(first.characters);
  if (range.min < min) reader.report(path, "minLength");
  if (max !== null && (range.max === null || range.max > max)) reader.report(path, "maxLength");
  return syntax.of(first.characters);
}

/** The strings of a Lark grammar, as rules in which each character is written in the given syntax. */
function larkString(grammar: Grammar, syntax: StringSyntax, definition: string): GrammarExpression {
  const key = JSON.stringify(syntax.spell(everyCodePoint));
  const write = (leaf: Leaf): GrammarExpression =>
    leaf.kind === "chars"
      ? syntax.spell(leaf.set)
      : sequenceOf([...leaf.text].map((c) => syntax.spell(oneCodePoint(c))));
  const characters = larkExpression(definition, grammar, { key, write });
  return isNever(characters) ? characters : syntax.around(characters);
}

type Leaf = GrammarExpression & { kind: "text" | "chars" };

/** The characters of keys within limits, at least one. What would need rules of its own is reported. */
export function keyCharacters(reader: SchemaReader, limits: StringLimits, path: string): GrammarExpression {
  const [first, ...others] = described(reader, limits);
  if (first === undefined) return repeat(chars(everyCodePoint), Math.max(1, limits.min), limits.max);
  const whole = ofLength(first.characters, limits);
  if (whole === null || others.length > 0) reader.report(path, "propertyNames");
  return whole ?? first.characters;
}

interface Described {
  readonly characters: GrammarExpression;
  readonly path: string;
  readonly keyword: string;
}

/** The texts of the patterns and formats of a string. Those without an expression are reported. */
function described(reader: SchemaReader, limits: StringLimits): readonly Described[] {
  const patterns = limits.patterns.map(({ pattern, path }) => ({
    characters: patternExpression(pattern),
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

/** The texts in which a pattern matches anywhere, or null if the pattern is malformed or cannot be expressed. */
export function patternExpression(pattern: string): GrammarExpression | null {
  try {
    return regexExpression(pattern, "anywhere");
  } catch (error) {
    if (error instanceof RegexError) return null;
    throw error;
  }
}

/** The texts of `characters` that have the right length, or null if that is not easily expressed. */
function ofLength(characters: GrammarExpression, { min, max }: StringLimits): GrammarExpression | null {
  const range = lengths(characters);
  if (range.min >= min && (max === null || (range.max !== null && range.max <= max))) return characters;
  // A repetition of one class (`^[a-z]*$`): its count is the length.
  if (characters.kind !== "repeat") return null;
  const item = lengths(characters.item);
  if (item.min !== 1 || item.max !== 1) return null;
  const least = Math.max(min, characters.min);
  const most = max === null || characters.max === null ? (max ?? characters.max) : Math.min(max, characters.max);
  return repeat(characters.item, least, most);
}

const hex4 = "[0-9a-fA-F]{1,4}";
const octet = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const ipv4 = `(${octet}\\.){3}${octet}`;
// Six labels of 40 characters are shorter than the limit of 253 for a host name.
const label = "[A-Za-z0-9]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?";
const host = `${label}(\\.${label}){0,5}`;

const leapYear = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)";
const date =
  "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))" +
  `|${leapYear}-02-29)`;
const clock = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?";
const offset = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";

const unreserved = "[A-Za-z0-9._~!$&'()*+,;=:@-]";
const escapedByte = "%[0-9A-Fa-f]{2}";
const pathCharacter = `(${unreserved}|${escapedByte})`;
const path = `(/${pathCharacter}{0,256}){0,64}`;
const query = `(\\?(${pathCharacter}|[/?]){0,2048})?(#(${pathCharacter}|[/?]){0,256})?`;
const scheme = "[A-Za-z][A-Za-z0-9+.-]{0,15}";

const count = "[0-9]{1,6}";

/** One to three numbers with units, largest first. */
function descending(...units: readonly [string, string, string]): string {
  const [a, b, c] = units.map((unit) => `${count}${unit}`);
  return `(${a}(${b})?(${c})?|${b}(${c})?|${c})`;
}

/**
 * The formats of JSON Schema that a grammar can write, as patterns of the whole string. Each is a common subset of what ajv-formats
 * accepts: RFC 3339 dates and times with an upper-case `T` and `Z` and without leap seconds, uuids without `urn:`.
 */
const patterns: Readonly<Record<string, string>> = {
  date,
  time: `${clock}${offset}`,
  "date-time": `${date}T${clock}${offset}`,
  duration: `P(${count}W|${descending("Y", "M", "D")}(T${descending("H", "M", "S")})?|T${descending("H", "M", "S")})`,
  uuid: "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
  email: `[A-Za-z0-9!#$%&'*+/=?^_\`{|}~-]{1,32}(\\.[A-Za-z0-9!#$%&'*+/=?^_\`{|}~-]{1,32}){0,4}@(${label}\\.){1,4}${label}`,
  hostname: host,
  ipv4,
  ipv6: [
    `(${hex4}:){7}${hex4}`,
    ...[1, 2, 3, 4, 5, 6].map((n) => `(${hex4}:){1,${n}}(:${hex4}){1,${7 - n}}`),
    `::(${hex4}:){0,6}${hex4}`,
    `(${hex4}:){1,7}:`,
    "::",
    `::(ffff:)?${ipv4}`,
  ].join("|"),
  byte: "([A-Za-z0-9+/]{4}){0,4096}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
  url: `https?://([a-z0-9]{1,30}(-[a-z0-9]{1,30}){0,2}\\.){1,4}[a-z]{2,20}(:[0-9]{2,5})?(/${pathCharacter}{0,256}${path}${query})?`,
  uri: `${scheme}:(//${host}(:[0-9]{1,5})?${path}|${pathCharacter}{1,256}${path})${query}`,
  "uri-reference": `(${scheme}:)?(//${host}(:[0-9]{1,5})?)?${path}${query}`,
  "iso-time": `${clock}${offset}`,
  "iso-date-time": `${date}T${clock}${offset}`,
  "json-pointer": "(/([^~/]|~[01]){0,64}){0,32}",
};

const cache = new Map<string, GrammarExpression>();

/** The strings of a format, or null if it is unknown. */
function formatExpression(name: string): GrammarExpression | null {
  const pattern = Object.hasOwn(patterns, name) ? patterns[name] : undefined;
  if (pattern === undefined) return null;
  let expression = cache.get(name);
  if (expression === undefined) {
    expression = regexExpression(`^(${pattern})$`, "whole");
    cache.set(name, expression);
  }
  return expression;
}

/** Maximum number of states of an intersection: more make a grammar that slows down every token. */
const maxStates = 2_000;

/** Maximum number of positions that one expression may be at after the same text. */
const maxPositions = 2_000;

/** The rest of an expression, as a list of expressions to match in order; null: nothing is left, so the text may end. */
type Rest = { readonly first: GrammarExpression; readonly rest: Rest } | null;

/** The positions of all expressions after some text. Its length is counted only as far as it matters. */
interface State {
  readonly positions: readonly (readonly Rest[])[];
  readonly count: number;
  readonly accepts: boolean;
  readonly key: string;
}

interface Transition {
  readonly set: CodePoints;
  readonly to: State;
}

/**
 * The texts that match all expressions and have between `min` and `max` characters: the product of their automata and a counter. The
 * expressions contain no references to rules. `spell` writes one character of a set.
 *
 * @returns null if that has too many states.
 */
function intersection(
  grammar: Grammar,
  { expressions, min, max }: { expressions: readonly GrammarExpression[]; min: number; max: number | null },
  spell: (set: CodePoints) => GrammarExpression,
): GrammarExpression | null {
  const reached = new Map<string, State>();
  const transitions = new Map<string, readonly Transition[]>();
  const start = stateOf(
    expressions.map((expression) => [{ first: expression, rest: null }]),
    0,
  );
  if (start === null) return null;
  reached.set(start.key, start);
  for (const state of reached.values()) {
    const next = state.count === max ? [] : transitionsOf(state, Math.min(state.count + 1, max ?? min));
    if (next === null) return null;
    transitions.set(state.key, next);
    for (const { to } of next) reached.set(to.key, to);
    if (reached.size > maxStates) return null;
  }
  const id = `intersection ${JSON.stringify(expressions)} ${min} ${max} ${JSON.stringify(spell(everyCodePoint))}`;
  const ruleOf = (state: State): GrammarExpression =>
    grammar.shared(`${id} ${state.key}`, "both", () =>
      choice(
        ...(state.accepts && state.count >= min ? [empty] : []),
        ...(transitions.get(state.key) ?? []).map(({ set, to }) => sequence(spell(set), ruleOf(to))),
      ),
    );
  return ruleOf(start);
}

/** null: one of the expressions has too many positions. */
function stateOf(rests: readonly (readonly Rest[])[], count: number): State | null {
  const positions: (readonly Rest[])[] = [];
  for (const each of rests) {
    const expanded = expand(each);
    if (expanded === null) return null;
    positions.push(expanded);
  }
  return {
    positions,
    count,
    accepts: positions.every((each) => each.includes(null)),
    key: `${count}: ${positions.map((each) => each.map(restKey).toSorted().join(" ")).join(" & ")}`,
  };
}

/** The transitions by one character; those to the same state are one. null: too many positions. */
function transitionsOf(state: State, count: number): Transition[] | null {
  const steps = state.positions.map((each) => each.flatMap(stepsOf));
  const transitions = new Map<string, Transition>();
  for (const range of splitRanges(steps.flat().map(({ set }) => set))) {
    const next = steps.map((each) =>
      each.filter(({ set }) => includesCodePoint(set, range[0])).map(({ rest }) => rest),
    );
    if (next.some((each) => each.length === 0)) continue;
    const to = stateOf(next, count);
    if (to === null) return null;
    if (to.positions.some((each) => each.length === 0)) continue;
    transitions.set(to.key, { set: union(transitions.get(to.key)?.set ?? [], [range]), to });
  }
  return [...transitions.values()];
}

/** The next character of an expanded position, and what follows it. */
function stepsOf(position: Rest): { set: CodePoints; rest: Rest }[] {
  if (position === null) return [];
  const { first, rest } = position;
  if (first.kind === "chars") return [{ set: first.set, rest }];
  if (first.kind !== "text") return [];
  const [character = ""] = first.text;
  const left = first.text.slice(character.length);
  return [{ set: oneCodePoint(character), rest: left === "" ? rest : { first: literal(left), rest } }];
}

/** Splits the characters of all sets into ranges that are entirely inside or entirely outside each set. */
function splitRanges(sets: readonly CodePoints[]): (readonly [number, number])[] {
  const starts = new Set<number>();
  for (const [first, last] of sets.flat()) starts.add(first).add(last + 1);
  const sorted = [...starts].sort((a, b) => a - b);
  const whole = union(...sets);
  return sorted
    .slice(0, -1)
    .map((first, i) => [first, (sorted[i + 1] ?? first + 1) - 1] as const)
    .filter(([first]) => includesCodePoint(whole, first));
}

/** Expands each position until a character or the end is next, in all ways, each way once. null: there are too many. */
function expand(rests: readonly Rest[]): readonly Rest[] | null {
  const expanded: Rest[] = [];
  const seen = new Set<string>();
  const todo: Rest[] = [...rests];
  for (let position = todo.pop(); position !== undefined; position = todo.pop()) {
    const key = restKey(position);
    if (seen.has(key)) continue;
    seen.add(key);
    if (seen.size > maxPositions) return null;
    if (position === null) {
      expanded.push(position);
      continue;
    }
    const { first, rest } = position;
    switch (first.kind) {
      case "chars":
        expanded.push(position);
        break;
      case "text":
        if (first.text === "") todo.push(rest);
        else expanded.push(position);
        break;
      case "sequence":
        todo.push(first.items.reduceRight<Rest>((next, item) => ({ first: item, rest: next }), rest));
        break;
      case "choice":
        todo.push(...first.options.map((option) => ({ first: option, rest })));
        break;
      case "repeat": {
        const { item, min, max } = first;
        if (min === 0) todo.push(rest);
        const again = repeat(item, Math.max(0, min - 1), max === null ? null : max - 1);
        todo.push({ first: item, rest: again.kind === "text" ? rest : { first: again, rest } });
        break;
      }
    }
  }
  return expanded;
}

const ids = new WeakMap<object, number>();
let nextId = 0;

/** Equal positions have equal keys. Texts and repetitions are compared by content, other expressions by identity. */
function restKey(position: Rest): string {
  let key = "";
  for (let at = position; at !== null; at = at.rest) key += `${expressionKey(at.first)}|`;
  return key;
}

function expressionKey(expression: GrammarExpression): string {
  if (expression.kind === "text") return JSON.stringify(expression.text);
  if (expression.kind === "repeat") return `${expressionKey(expression.item)}{${expression.min},${expression.max}}`;
  let id = ids.get(expression);
  if (id === undefined) ids.set(expression, (id = nextId++));
  return `#${id}`;
}
