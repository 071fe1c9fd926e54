import {
  choice,
  choiceOf,
  isNever,
  never,
  optional,
  repeat,
  sequence,
  sequenceOf,
  text,
  type Expression,
} from "./expression.ts";
import type { SchemaReader } from "./flatten-schema.ts";
import { GrammarError, type Grammar } from "./grammar.ts";
import { numberExpression } from "./number-expression.ts";
import { membersInOrder } from "./members-in-order.ts";
import { nameKeys, patternKeys } from "./object-keys.ts";
import {
  canonicalJson,
  jsonTypes,
  type ArrayLimits,
  type JsonType,
  type ObjectLimits,
  type Parts,
  type Shape,
} from "./schema-shape.ts";
import { accepts, acceptsAll, partsOf } from "./shape-accepts.ts";
import { constrains, isConstrained, meantTypes } from "./shape-constraints.ts";
import { SchemaError } from "./schema-error.ts";
import { stringExpression } from "./string-limits.ts";
import { textChoice } from "./text-choice.ts";
import { anyValue, type ValueSyntax } from "./value-syntax.ts";

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
