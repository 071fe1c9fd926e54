import {
  choice,
  choiceOf,
  type GrammarExpression,
  isEmpty,
  isNever,
  literal,
  never,
  optional,
  repeat,
  sequence,
  sequenceOf,
} from "./expression.ts";
import type { SchemaReader } from "./schema-reader.ts";
import { type Grammar, GrammarError } from "./grammar.ts";
import { decimalOf, numberExpression } from "./number-expression.ts";
import {
  type ArrayLimits,
  canonicalJson,
  canonicalSet,
  constrains,
  isConstrained,
  type JsonType,
  jsonTypes,
  meantTypes,
  type ObjectLimits,
  type Parts,
  type Shape,
} from "./schema-shape.ts";
import { SchemaError } from "./grammar-errors.ts";
import { keyCharacters, patternExpression, stringExpression } from "./string-expression.ts";
import { textChoice } from "./text-choice.ts";
import { anyKeyBut, anyValue, type ValueSyntax } from "./value-syntax.ts";

/** What the functions that build the expression of a schema's values share. */
export interface ValueContext {
  readonly grammar: Grammar;
  readonly reader: SchemaReader;
  readonly syntax: ValueSyntax;
}

/** The values that satisfy all of `parts`, in the given syntax. Equal schemas share a rule, which ends recursion. */
export function valueExpression(context: ValueContext, parts: Parts, hint = "value"): GrammarExpression {
  const { grammar, reader, syntax } = context;
  const path = parts[0]?.path ?? "";
  const key = `${reader.scope} ${syntax.id} ${JSON.stringify(parts.map((part) => part.schema))}`;
  reader.spend(key.length, path);
  try {
    return reader.within(path, () =>
      grammar.shared(key, hint, () =>
        choice(...reader.shapes(parts).map((shape) => shapeExpression(context, shape, path, hint))),
      ),
    );
  } catch (error) {
    if (error instanceof GrammarError) throw new SchemaError(path, error.message, { cause: error });
    throw error;
  }
}

/** The values of one shape. `path`: its path, for reports. */
export function shapeExpression(context: ValueContext, shape: Shape, path: string, hint: string): GrammarExpression {
  const { grammar, syntax } = context;
  if (shape.values !== undefined) {
    const allowed = shape.values.filter((value) => accepts(context.reader, shape, value));
    return oneOf(
      grammar,
      allowed.map((value) => valueLiteral(syntax, value)),
    );
  }
  const types = meantTypes(shape);
  if (types.length === jsonTypes.length && !isConstrained(shape)) return anyValue(grammar, syntax);
  return choice(...types.map((type) => typeExpression(context, shape, type, path, hint)));
}

function typeExpression(
  context: ValueContext,
  shape: Shape,
  type: JsonType,
  path: string,
  hint: string,
): GrammarExpression {
  const { grammar, reader, syntax } = context;
  switch (type) {
    case "null":
      return syntax.null;
    case "boolean":
      return choice(syntax.true, syntax.false);
    case "number": {
      const numbers = numberExpression(grammar, shape.number);
      if (numbers !== null) return numbers;
      reader.report(path, "multipleOf");
      return numberExpression(grammar, { ...shape.number, multiples: [] }) ?? never;
    }
    case "string":
      return stringExpression(context, syntax.strings, shape.string, path);
    case "array":
      if (!constrains(shape, "array")) return anyValue(grammar, syntax, "array");
      return arrayExpression(context, shape.array, hint);
    case "object":
      if (!constrains(shape, "object")) return anyValue(grammar, syntax, "object");
      return objectExpression(context, shape.object, hint);
  }
}

function arrayExpression(context: ValueContext, limits: ArrayLimits, hint: string): GrammarExpression {
  const { grammar, syntax } = context;
  const comma = sequence(literal(","), syntax.space);
  const items = limits.first.map((parts, i) => valueExpression(context, parts, `${hint}-${i}`));
  // If only the first items are described, further items are written only if they are required.
  const others = limits.rest ?? (limits.closed || (items.length > 0 && limits.min <= items.length) ? null : []);
  const further = others === null ? never : valueExpression(context, others, `${hint}-item`);
  const furtherItems = (position: number): GrammarExpression => {
    const most = limits.max === null ? null : limits.max - position;
    const least = Math.max(0, limits.min - position);
    if (position > 0) return repeat(sequence(comma, further), least, most);
    const several = sequence(
      further,
      repeat(sequence(comma, further), Math.max(0, least - 1), most === null ? null : most - 1),
    );
    return least === 0 ? optional(several) : several;
  };
  const mayEnd = (position: number): boolean => position >= limits.min;
  const mustEnd = (position: number): boolean => limits.max !== null && position >= limits.max;
  let rest = mustEnd(items.length) ? literal("") : furtherItems(items.length);
  for (let position = items.length - 1; position >= 0; position--) {
    const item = items[position] ?? never;
    const written = sequence(...(position > 0 ? [comma] : []), item, rest);
    const from = mustEnd(position) ? literal("") : mayEnd(position) ? optional(written) : written;
    // Limits the nesting of groups.
    rest = position > 0 && position % 16 === 0 && !isNever(from) ? grammar.define(`${hint}-items`, from) : from;
  }
  return sequence(literal("["), syntax.space, rest, syntax.space, literal("]"));
}

/**
 * Objects: the declared properties in order, each at most once, the required ones always; then others, if they are allowed. If a schema
 * declares properties and does not describe others, JSON Schema allows any; none are written.
 */
function objectExpression(context: ValueContext, limits: ObjectLimits, hint: string): GrammarExpression {
  const { space } = context.syntax;
  const names = new Set([...limits.properties.keys(), ...limits.required]);
  const members = [...names].map((name) => ({
    expression: sequence(context.syntax.key(name), propertyValue(context, limits, name, hint)),
    required: limits.required.has(name),
  }));
  const between = sequence(literal(","), space);
  const body = membersInOrder(context, {
    members,
    other: otherMember(context, limits, names, hint),
    between,
    limits,
    hint,
  });
  return sequence(literal("{"), space, body, space, literal("}"));
}

/** The values of a declared property; `never` if its name is not allowed. */
export function propertyValue(
  context: ValueContext,
  limits: ObjectLimits,
  name: string,
  hint: string,
): GrammarExpression {
  const allowed = limits.names.length === 0 || acceptsAll(context.reader, limits.names, name);
  return allowed ? valueExpression(context, propertyParts(context.reader, limits, name), `${hint}-${name}`) : never;
}

/** An undeclared member; `never` if none is allowed. */
function otherMember(
  context: ValueContext,
  limits: ObjectLimits,
  declared: ReadonlySet<string>,
  hint: string,
): GrammarExpression {
  const { grammar, syntax } = context;
  const member = (keys: GrammarExpression, values: GrammarExpression): GrammarExpression =>
    isNever(keys) || isNever(values) ? never : grammar.define(`${hint}-member`, sequence(syntax.keys(keys), values));
  const [pattern, ...others] = limits.patterns;
  if (pattern !== undefined) {
    const keys = others.length > 0 || limits.names.length > 0 ? null : patternKeys(context.reader, pattern, declared);
    if (keys !== null) return member(keys, valueExpression(context, pattern.parts, `${hint}-value`));
    // It is unknown which members the patterns apply to. Only declared members are written, which satisfies all patterns.
    return never;
  }
  if (limits.additional === undefined && (limits.closed || declared.size > 0)) return never;
  return member(
    nameKeys(context.reader, limits.names, declared),
    valueExpression(context, limits.additional ?? [], `${hint}-value`),
  );
}

/** One of these values; the texts among them are combined with `textChoice`. */
function oneOf(grammar: Grammar, values: readonly GrammarExpression[]): GrammarExpression {
  const texts = values.flatMap((value) => (value.kind === "text" ? [value.text] : []));
  const others = values.filter(({ kind }) => kind !== "text");
  return choiceOf([...(texts.length > 0 ? [textChoice(grammar, texts)] : []), ...others]);
}

/** One value as a literal. */
function valueLiteral(syntax: ValueSyntax, value: unknown): GrammarExpression {
  const comma = sequence(literal(","), syntax.space);
  const separated = (items: readonly GrammarExpression[]): GrammarExpression =>
    sequenceOf(items.flatMap((item, i) => (i === 0 ? [item] : [comma, item])));
  if (value === null) return syntax.null;
  if (typeof value === "boolean") return value ? syntax.true : syntax.false;
  if (typeof value === "string") return syntax.strings.of(literal(value));
  if (Array.isArray(value)) {
    return sequence(literal("["), separated(value.map((item) => valueLiteral(syntax, item))), literal("]"));
  }
  if (typeof value === "object") {
    const members = Object.entries(value).map(([name, member]) =>
      sequence(syntax.key(name), valueLiteral(syntax, member)),
    );
    return sequence(literal("{"), separated(members), literal("}"));
  }
  return literal(canonicalJson(value));
}

/** The keys that match a pattern; null if a declared name may match it. */
function patternKeys(
  reader: SchemaReader,
  pattern: ObjectLimits["patterns"][number],
  declared: ReadonlySet<string>,
): GrammarExpression | null {
  if ([...declared].some((name) => reader.matches(pattern, name, "patternProperties") !== false)) return null;
  return patternExpression(pattern.pattern);
}

/** The characters of the keys that `propertyNames` allows and that are not declared. */
function nameKeys(reader: SchemaReader, names: Parts, declared: ReadonlySet<string>): GrammarExpression {
  if (names.length === 0) return anyKeyBut(declared);
  const path = names[0]?.path ?? "";
  return choice(
    ...reader.shapes(names).map(({ values, string }) => {
      if (values !== undefined) {
        const free = values.filter((value) => typeof value === "string" && !declared.has(value));
        return choiceOf(free.map((value) => literal(String(value))));
      }
      const apart = [...declared].every((name) =>
        string.patterns.some((pattern) => reader.matches(pattern, name, "propertyNames") === false),
      );
      if (apart) return keyCharacters(reader, string, path);
      reader.report(path, "propertyNames");
      return anyKeyBut(declared);
    }),
  );
}

/** A declared property: key and value. */
interface Member {
  readonly expression: GrammarExpression;
  readonly required: boolean;
}

/** Maximum number of members in one rule. */
const maxRuleLength = 64;

/**
 * Members in order. The state of the automaton is the next declared member and the number of members so far, counted only as far as
 * `minProperties` and `maxProperties` require.
 */
export function membersInOrder(
  { grammar, reader }: { grammar: Grammar; reader: SchemaReader },
  {
    members,
    other,
    between,
    limits,
    hint,
  }: {
    members: readonly Member[];
    other: GrammarExpression;
    between: GrammarExpression;
    limits: Pick<ObjectLimits, "min" | "max" | "path">;
    hint: string;
  },
): GrammarExpression {
  const reachable = members.filter(({ expression }) => !isNever(expression)).length + (isNever(other) ? 0 : 1);
  // Undeclared members may repeat a key, so only the first of them certainly counts.
  if (limits.min > reachable && !isNever(other)) reader.report(limits.path, "minProperties");
  const min = isNever(other) ? limits.min : Math.min(limits.min, reachable);
  const counted = Math.max(1, min, limits.max ?? 0);
  const others = (count: number): GrammarExpression => {
    const least = count >= min ? 0 : count + 1 >= min && !isNever(other) ? 1 : null;
    if (least === null) return never;
    const most = limits.max === null ? null : limits.max - count;
    const further = sequence(between, other);
    if (count > 0) return repeat(further, least, most);
    const several = sequence(other, repeat(further, 0, most === null ? null : Math.max(0, most - 1)));
    return least === 0 ? (most === 0 ? literal("") : optional(several)) : several;
  };
  /** A state becomes a rule of its own if it has two predecessors, after an optional member, or where a rule would become long. */
  const firstOptional = members.findIndex(({ required }) => !required);
  const isShared = (position: number): boolean =>
    (firstOptional >= 0 && position > firstOptional) || (position > 0 && position % maxRuleLength === 0);
  const isFull = (count: number): boolean => limits.max !== null && count >= limits.max;

  // The possible numbers of members at each position; then the expression from each position on, from last to first.
  const counts: ReadonlySet<number>[] = [new Set([0])];
  for (const { required } of members) {
    const next = new Set<number>();
    for (const count of counts.at(-1) ?? []) {
      if (!isFull(count)) next.add(Math.min(count + 1, counted));
      if (!required) next.add(count);
    }
    reader.spend(50 * next.size, limits.path);
    counts.push(next);
  }
  let following = new Map<number, GrammarExpression>();
  for (let position = members.length; position >= 0; position--) {
    const member = members[position];
    const here = new Map<number, GrammarExpression>();
    for (const count of counts[position] ?? []) {
      let body: GrammarExpression;
      if (member === undefined) body = others(count);
      else {
        const rest = following.get(Math.min(count + 1, counted)) ?? never;
        const written = isFull(count) ? never : sequence(...(count > 0 ? [between] : []), member.expression, rest);
        body = member.required ? written : choice(written, following.get(count) ?? never);
      }
      const isRule = isShared(position) && !isNever(body) && !isEmpty(body);
      here.set(count, isRule ? grammar.define(`${hint}-rest`, body) : body);
    }
    following = here;
  }
  return following.get(0) ?? never;
}

/**
 * Whether a value has a shape. It selects the members of an `enum` that satisfy the other keywords. Formats are not checked: the author of
 * the schema chose the values.
 */
function accepts(reader: SchemaReader, shape: Shape, value: unknown): boolean {
  const type = typeOf(value);
  if (type === null || !shape.types.has(type)) return false;
  if (shape.values !== undefined && !canonicalSet(shape.values).has(canonicalJson(value))) return false;
  if (typeof value === "number") return acceptsNumber(shape.number, value);
  if (typeof value === "string") return acceptsString(reader, shape.string, value);
  if (Array.isArray(value)) return acceptsArray(reader, shape.array, value);
  return (
    typeof value !== "object" || value === null || acceptsObject(reader, shape.object, value as Record<string, unknown>)
  );
}

function typeOf(value: unknown): JsonType | null {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  const type = typeof value;
  return type === "string" || type === "number" || type === "boolean" || type === "object" ? type : null;
}

function acceptsNumber({ integer, low, high, multiples }: Shape["number"], value: number): boolean {
  if (integer && !Number.isInteger(value)) return false;
  if (low !== undefined && (value < low.value || (low.exclusive && value === low.value))) return false;
  if (high !== undefined && (value > high.value || (high.exclusive && value === high.value))) return false;
  return multiples.every((multiple) => isMultiple(value, multiple));
}

function isMultiple(value: number, multiple: number): boolean {
  const [a, b] = [decimalOf(value), decimalOf(multiple)];
  return (a.digits * 10n ** BigInt(b.places)) % (b.digits * 10n ** BigInt(a.places)) === 0n;
}

function acceptsString(reader: SchemaReader, { min, max, patterns }: Shape["string"], value: string): boolean {
  const length = [...value].length;
  return (
    length >= min &&
    (max === null || length <= max) &&
    // What cannot be decided is accepted and reported.
    patterns.every((pattern) => reader.matches(pattern, value, "pattern") !== false)
  );
}

function acceptsArray(
  reader: SchemaReader,
  { first, rest, min, max }: Shape["array"],
  value: readonly unknown[],
): boolean {
  return (
    value.length >= min &&
    (max === null || value.length <= max) &&
    value.every((item, i) => acceptsAll(reader, first[i] ?? rest ?? [], item))
  );
}

function acceptsObject(reader: SchemaReader, limits: Shape["object"], value: Record<string, unknown>): boolean {
  const names = Object.keys(value);
  return (
    names.length >= limits.min &&
    (limits.max === null || names.length <= limits.max) &&
    [...limits.required].every((name) => Object.hasOwn(value, name)) &&
    names.every(
      (name) =>
        acceptsAll(reader, limits.names, name) && acceptsAll(reader, propertyParts(reader, limits, name), value[name]),
    )
  );
}

/**
 * The schemas that a property must satisfy: its own and those of the patterns that match its name; without any of these, the schemas of
 * additional properties.
 */
export function propertyParts(reader: SchemaReader, limits: Shape["object"], name: string): Parts {
  const own = limits.properties.get(name);
  const matching = limits.patterns
    .filter((pattern) => reader.matches(pattern, name, "patternProperties") === true)
    .flatMap(({ parts }) => parts);
  if (own === undefined && matching.length === 0) return limits.additional ?? [];
  return [...(own ?? []), ...matching];
}

export function acceptsAll(reader: SchemaReader, parts: Parts, value: unknown): boolean {
  return reader.shapes(parts).some((shape) => accepts(reader, shape, value));
}
