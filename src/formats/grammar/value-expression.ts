import {
  choice,
  choiceOf,
  type Expression,
  isEmpty,
  isNever,
  never,
  optional,
  repeat,
  sequence,
  sequenceOf,
  text,
} from "./expression.ts";
import type { SchemaReader } from "./flatten-schema.ts";
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
import { SchemaError } from "./schema-error.ts";
import { keyCharacters, stringExpression } from "./string-limits.ts";
import { textChoice } from "./text-choice.ts";
import { anyKeyBut, anyValue, type ValueSyntax } from "./value-syntax.ts";
import { RegexError } from "./regex-syntax.ts";
import { regexExpression } from "./regex-to-gbnf.ts";

/** What the expressions of a schema's values are made with. */
export interface ValueContext {
  readonly grammar: Grammar;
  readonly reader: SchemaReader;
  readonly syntax: ValueSyntax;
}

/** The values that satisfy all of `parts`, as the syntax writes them. Equal schemas share a rule, which is how recursion ends. */
export function valueExpression(context: ValueContext, parts: Parts, hint = "value"): Expression {
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

/** The values of one shape. `path` is where it stands, for reports. */
export function shapeExpression(context: ValueContext, shape: Shape, path: string, hint: string): Expression {
  const { grammar, syntax } = context;
  if (shape.values !== undefined) {
    const allowed = shape.values.filter((value) => accepts(context.reader, shape, value));
    return oneOf(
      grammar,
      allowed.map((value) => literal(syntax, value)),
    );
  }
  const types = meantTypes(shape);
  if (types.length === jsonTypes.length && !isConstrained(shape)) return anyValue(grammar, syntax);
  return choice(...types.map((type) => typeExpression(context, shape, type, path, hint)));
}

function typeExpression(context: ValueContext, shape: Shape, type: JsonType, path: string, hint: string): Expression {
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

function arrayExpression(context: ValueContext, limits: ArrayLimits, hint: string): Expression {
  const { grammar, syntax } = context;
  const comma = sequence(text(","), syntax.space);
  const items = limits.first.map((parts, i) => valueExpression(context, parts, `${hint}-${i}`));
  // Where the first items are described and the others are not, no others are written unless they must be.
  const others = limits.rest ?? (limits.closed || (items.length > 0 && limits.min <= items.length) ? null : []);
  const further = others === null ? never : valueExpression(context, others, `${hint}-item`);
  const furtherItems = (position: number): Expression => {
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
  let rest = mustEnd(items.length) ? text("") : furtherItems(items.length);
  for (let position = items.length - 1; position >= 0; position--) {
    const item = items[position] ?? never;
    const written = sequence(...(position > 0 ? [comma] : []), item, rest);
    const from = mustEnd(position) ? text("") : mayEnd(position) ? optional(written) : written;
    // Groups stand in each other only so deep.
    rest = position > 0 && position % 16 === 0 && !isNever(from) ? grammar.define(`${hint}-items`, from) : from;
  }
  return sequence(text("["), syntax.space, rest, syntax.space, text("]"));
}

/**
 * Objects: the declared properties in their order, each once, the required ones always; then others, where they are allowed. Where
 * a schema declares properties and says nothing of others, JSON Schema lets any in; no others are written then.
 */
function objectExpression(context: ValueContext, limits: ObjectLimits, hint: string): Expression {
  const { space } = context.syntax;
  const names = new Set([...limits.properties.keys(), ...limits.required]);
  const members = [...names].map((name) => ({
    expression: sequence(context.syntax.key(name), propertyValue(context, limits, name, hint)),
    required: limits.required.has(name),
  }));
  const between = sequence(text(","), space);
  const body = membersInOrder(context, {
    members,
    other: otherMember(context, limits, names, hint),
    between,
    limits,
    hint,
  });
  return sequence(text("{"), space, body, space, text("}"));
}

/** The values of a declared property; `never` where its name is not allowed. */
export function propertyValue(context: ValueContext, limits: ObjectLimits, name: string, hint: string): Expression {
  const allowed = limits.names.length === 0 || acceptsAll(context.reader, limits.names, name);
  return allowed ? valueExpression(context, partsOf(context.reader, limits, name), `${hint}-${name}`) : never;
}

/** A member that is not declared; `never` where there is none. */
function otherMember(
  context: ValueContext,
  limits: ObjectLimits,
  declared: ReadonlySet<string>,
  hint: string,
): Expression {
  const { grammar, syntax } = context;
  const member = (keys: Expression, values: Expression): Expression =>
    isNever(keys) || isNever(values) ? never : grammar.define(`${hint}-member`, sequence(syntax.keys(keys), values));
  const [pattern, ...others] = limits.patterns;
  if (pattern !== undefined) {
    const keys = others.length > 0 || limits.names.length > 0 ? null : patternKeys(context.reader, pattern, declared);
    if (keys !== null) return member(keys, valueExpression(context, pattern.parts, `${hint}-value`));
    // Which members the patterns speak of cannot be said. None but the declared ones are written, which satisfies them all.
    return never;
  }
  if (limits.additional === undefined && (limits.closed || declared.size > 0)) return never;
  return member(
    nameKeys(context.reader, limits.names, declared),
    valueExpression(context, limits.additional ?? [], `${hint}-value`),
  );
}

/** One of these values: the texts among them as a tree, which a model's sampler follows with one parse for all. */
function oneOf(grammar: Grammar, values: readonly Expression[]): Expression {
  const texts = values.flatMap((value) => (value.kind === "text" ? [value.text] : []));
  const others = values.filter(({ kind }) => kind !== "text");
  return choiceOf([...(texts.length > 0 ? [textChoice(grammar, texts)] : []), ...others]);
}

/** One value, written out. */
function literal(syntax: ValueSyntax, value: unknown): Expression {
  const comma = sequence(text(","), syntax.space);
  const separated = (items: readonly Expression[]): Expression =>
    sequenceOf(items.flatMap((item, i) => (i === 0 ? [item] : [comma, item])));
  if (value === null) return syntax.null;
  if (typeof value === "boolean") return value ? syntax.true : syntax.false;
  if (typeof value === "string") return syntax.strings.of(text(value));
  if (Array.isArray(value)) {
    return sequence(text("["), separated(value.map((item) => literal(syntax, item))), text("]"));
  }
  if (typeof value === "object") {
    const members = Object.entries(value).map(([name, member]) => sequence(syntax.key(name), literal(syntax, member)));
    return sequence(text("{"), separated(members), text("}"));
  }
  return text(canonicalJson(value));
}

/** The keys that match a pattern, if no declared name is among them. */
export function patternKeys(
  reader: SchemaReader,
  pattern: ObjectLimits["patterns"][number],
  declared: ReadonlySet<string>,
): Expression | null {
  if ([...declared].some((name) => reader.matches(pattern, name, "patternProperties") !== false)) return null;
  try {
    return regexExpression(pattern.pattern, "anywhere");
  } catch (error) {
    if (error instanceof RegexError) return null;
    throw error;
  }
}

/** The characters of the keys that `propertyNames` allows and that are not declared. */
export function nameKeys(reader: SchemaReader, names: Parts, declared: ReadonlySet<string>): Expression {
  if (names.length === 0) return anyKeyBut(declared);
  const path = names[0]?.path ?? "";
  return choice(
    ...reader.shapes(names).map(({ values, string }) => {
      if (values !== undefined) {
        const free = values.filter((value) => typeof value === "string" && !declared.has(value));
        return choiceOf(free.map((value) => text(String(value))));
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

/** A property that is declared: key and value. */
export interface Member {
  readonly expression: Expression;
  readonly required: boolean;
}

/** A rule holds at most this many members. */
const longestRule = 64;

/**
 * Members one after the other. The automaton's state is which declared one comes next and how many there are so far, counted no
 * further than `minProperties` and `maxProperties` need.
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
    other: Expression;
    between: Expression;
    limits: Pick<ObjectLimits, "min" | "max" | "path">;
    hint: string;
  },
): Expression {
  const reachable = members.filter(({ expression }) => !isNever(expression)).length + (isNever(other) ? 0 : 1);
  // Undeclared members may repeat a key, so that only the first of them is sure to count.
  if (limits.min > reachable && !isNever(other)) reader.report(limits.path, "minProperties");
  const min = isNever(other) ? limits.min : Math.min(limits.min, reachable);
  const counted = Math.max(1, min, limits.max ?? 0);
  const others = (count: number): Expression => {
    const least = count >= min ? 0 : count + 1 >= min && !isNever(other) ? 1 : null;
    if (least === null) return never;
    const most = limits.max === null ? null : limits.max - count;
    const further = sequence(between, other);
    if (count > 0) return repeat(further, least, most);
    const several = sequence(other, repeat(further, 0, most === null ? null : Math.max(0, most - 1)));
    return least === 0 ? (most === 0 ? text("") : optional(several)) : several;
  };
  /** A state is a rule of its own where two ways lead to it, behind a member that may be absent, or where a rule would get long. */
  const firstOptional = members.findIndex(({ required }) => !required);
  const isShared = (position: number): boolean =>
    (firstOptional >= 0 && position > firstOptional) || (position > 0 && position % longestRule === 0);
  const isFull = (count: number): boolean => limits.max !== null && count >= limits.max;

  // The states by the number of members that are there, position after position; then what follows each, from the last position on.
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
  let following = new Map<number, Expression>();
  for (let position = members.length; position >= 0; position--) {
    const member = members[position];
    const here = new Map<number, Expression>();
    for (const count of counts[position] ?? []) {
      let body: Expression;
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
 * Whether a value has a shape: which members of an `enum` the schema's other keywords leave. Formats are not checked: the
 * schema's author chose the values.
 */
export function accepts(reader: SchemaReader, shape: Shape, value: unknown): boolean {
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
    // What cannot be decided is let through, and reported.
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
        acceptsAll(reader, limits.names, name) && acceptsAll(reader, partsOf(reader, limits, name), value[name]),
    )
  );
}

/** The schemas that a property must satisfy: its own and those of the patterns that its name matches, else the additional ones. */
export function partsOf(reader: SchemaReader, limits: Shape["object"], name: string): Parts {
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
