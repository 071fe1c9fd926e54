import { larkKeyword } from "../../core/custom-tool.ts";
import { type CodePoints, contains, everyCodePoint, oneCodePoint, union } from "./code-points.ts";
import {
  chars,
  choice,
  empty,
  type Expression,
  isNever,
  lengths,
  repeat,
  sequence,
  sequenceOf,
  text,
} from "./expression.ts";
import type { SchemaReader } from "./flatten-schema.ts";
import type { Grammar } from "./grammar.ts";
import { larkExpression } from "./lark-to-expression.ts";
import { RegexError } from "./regex-syntax.ts";
import { regexExpression } from "./regex-to-gbnf.ts";
import type { StringLimits } from "./schema-shape.ts";
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

const hex4 = "[0-9a-fA-F]{1,4}";
const octet = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const ipv4 = `(${octet}\\.){3}${octet}`;
// Six labels of 40 stay below the 253 characters of a host name.
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
 * The formats of JSON Schema that a grammar writes, as patterns of the whole string. Each writes only what ajv-formats accepts, and
 * of that what is common: RFC 3339 dates and times with an upper-case `T` and `Z` and without leap seconds, uuids without `urn:`.
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

const cache = new Map<string, Expression>();

/** The strings of a format; null for one that is not known. */
export function formatExpression(name: string): Expression | null {
  const pattern = Object.hasOwn(patterns, name) ? patterns[name] : undefined;
  if (pattern === undefined) return null;
  let expression = cache.get(name);
  if (expression === undefined) {
    expression = regexExpression(`^(${pattern})$`, "whole");
    cache.set(name, expression);
  }
  return expression;
}

/** More states than this make a grammar that slows down every token. */
const maxStates = 2_000;

/**
 * The texts that all expressions match and whose length is between `min` and `max`: the automata of the expressions side by side, with a counter. The
 * expressions have no references to rules. `spell` writes one character of a set.
 *
 * @returns null where that has too many states.
 */
export function intersected(
  grammar: Grammar,
  { expressions, min, max }: { expressions: readonly Expression[]; min: number; max: number | null },
  spell: (set: CodePoints) => Expression,
): Expression | null {
  const reached = new Map<string, State>();
  const moves = new Map<string, readonly Move[]>();
  const start = stateOf(
    expressions.map((expression) => [{ first: expression, rest: null }]),
    0,
  );
  if (start === null) return null;
  reached.set(start.key, start);
  for (const state of reached.values()) {
    const next = state.count === max ? [] : movesOf(state, Math.min(state.count + 1, max ?? min));
    if (next === null) return null;
    moves.set(state.key, next);
    for (const move of next) reached.set(move.to.key, move.to);
    if (reached.size > maxStates) return null;
  }
  const id = `intersection ${JSON.stringify(expressions)} ${min} ${max} ${JSON.stringify(spell(everyCodePoint))}`;
  const ruleOf = (state: State): Expression =>
    grammar.shared(`${id} ${state.key}`, "both", () =>
      choice(
        ...(state.accepts && state.count >= min ? [empty] : []),
        ...(moves.get(state.key) ?? []).map(({ set, to }) => sequence(spell(set), ruleOf(to))),
      ),
    );
  return ruleOf(start);
}

/** Where all automata stand, each in several places at a time, after so many characters (counted no further than it matters). */
interface State {
  readonly places: readonly (readonly Parse[])[];
  readonly count: number;
  readonly accepts: boolean;
  readonly key: string;
}

interface Move {
  readonly set: CodePoints;
  readonly to: State;
}

/** null: one of the automata stands in too many places. */
function stateOf(parses: readonly (readonly Parse[])[], count: number): State | null {
  const settled = parses.map((parse) => settle(new Map(), parse));
  const places = settled.filter((place) => place !== null);
  if (places.length < settled.length) return null;
  return {
    places,
    count,
    accepts: places.every((place) => place.includes(null)),
    key: `${count}: ${places.map((place) => place.map(keyOf).toSorted().join(" ")).join(" & ")}`,
  };
}

/** The moves by one character, those to the same state together. */
function movesOf(state: State, count: number): Move[] | null {
  const steps = state.places.map((place) => place.flatMap(stepOf));
  const moves = new Map<string, Move>();
  for (const range of piecesOf(steps.flat().map(({ set }) => set))) {
    const next = steps.map((step) => step.filter(({ set }) => contains(set, range[0])).map(({ rest }) => rest));
    if (next.some((place) => place.length === 0)) continue;
    const to = stateOf(next, count);
    if (to === null) return null;
    if (to.places.some((place) => place.length === 0)) continue;
    moves.set(to.key, { set: union(moves.get(to.key)?.set ?? [], [range]), to });
  }
  return [...moves.values()];
}

function stepOf(parse: Parse): { set: CodePoints; rest: Parse }[] {
  if (parse === null) return [];
  const { first, rest } = parse;
  if (first.kind === "chars") return [{ set: first.set, rest }];
  if (first.kind !== "text") return [];
  const [character = ""] = first.text;
  const left = first.text.slice(character.length);
  return [{ set: oneCodePoint(character), rest: left === "" ? rest : { first: text(left), rest } }];
}

/** The ranges that the ends of all sets cut the characters into: each is in a set as a whole, or not at all. */
function piecesOf(sets: readonly CodePoints[]): (readonly [number, number])[] {
  const starts = new Set<number>();
  for (const [first, last] of sets.flat()) starts.add(first).add(last + 1);
  const sorted = [...starts].sort((a, b) => a - b);
  const whole = union(...sets);
  return sorted
    .slice(0, -1)
    .map((first, i) => [first, (sorted[i + 1] ?? first + 1) - 1] as const)
    .filter(([first]) => contains(whole, first));
}

/** What is still to come of one way to read a text, as a list; null: nothing, the text may end. */
export type Parse = { readonly first: Expression; readonly rest: Parse } | null;

/** A grammar with more open parses than this at a time is not followed; those made here have fewer. */
const maxOpen = 2_000;

/** Goes on from each parse to where a character is next, all ways, each way once. null: there are too many. */
export function settle(rules: ReadonlyMap<string, Expression>, parses: readonly Parse[]): readonly Parse[] | null {
  const settled: Parse[] = [];
  const seen = new Set<string>();
  const todo: Parse[] = [...parses];
  for (let parse = todo.pop(); parse !== undefined; parse = todo.pop()) {
    const key = keyOf(parse);
    if (seen.has(key)) continue;
    seen.add(key);
    if (seen.size > maxOpen) return null;
    if (parse === null || parse.first.kind === "chars") {
      settled.push(parse);
      continue;
    }
    const { first, rest } = parse;
    switch (first.kind) {
      case "text":
        if (first.text === "") todo.push(rest);
        else settled.push(parse);
        break;
      case "rule": {
        const body = rules.get(first.name);
        if (body !== undefined) todo.push({ first: body, rest });
        break;
      }
      case "sequence":
        todo.push(first.items.reduceRight<Parse>((rest, item) => ({ first: item, rest }), rest));
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
  return settled;
}

const ids = new WeakMap<object, number>();
let nextId = 0;

/** Equal parses have equal keys; expressions are compared as objects, texts and repetitions by what they are. */
export function keyOf(parse: Parse): string {
  let key = "";
  for (let at = parse; at !== null; at = at.rest) key += `${expressionKey(at.first)}|`;
  return key;
}

function expressionKey(expression: Expression): string {
  if (expression.kind === "text") return JSON.stringify(expression.text);
  if (expression.kind === "rule") return expression.name;
  if (expression.kind === "repeat") return `${expressionKey(expression.item)}{${expression.min},${expression.max}}`;
  let id = ids.get(expression);
  if (id === undefined) ids.set(expression, (id = nextId++));
  return `#${id}`;
}
