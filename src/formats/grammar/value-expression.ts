import { choice, never, optional, repeat, sequence, text, type Expression } from "./expression.ts";
import type { SchemaReader } from "./flatten-schema.ts";
import type { Grammar } from "./grammar.ts";
import { numberExpression } from "./number-expression.ts";
import { objectExpression } from "./object-expression.ts";
import { canonicalJson, jsonTypes, type ArrayLimits, type JsonType, type Parts, type Shape } from "./schema-shape.ts";
import { stringExpression } from "./string-limits.ts";
import { accepts } from "./shape-accepts.ts";
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
  const key = `${reader.scope} ${syntax.id} ${JSON.stringify(parts.map((part) => part.schema))}`;
  reader.spend(key.length, parts[0]?.path ?? "");
  return grammar.shared(key, hint, () =>
    choice(...reader.shapes(parts).map((shape) => shapeExpression(context, shape, parts[0]?.path ?? "", hint))),
  );
}

/** The values of one shape. `path` is where it stands, for reports. */
export function shapeExpression(context: ValueContext, shape: Shape, path: string, hint: string): Expression {
  const { grammar, syntax } = context;
  if (shape.values !== undefined) {
    const allowed = shape.values.filter((value) => accepts(context.reader, shape, value));
    return choice(...allowed.map((value) => literal(syntax, value)));
  }
  const types = meantTypes(shape);
  if (types.length === jsonTypes.length && !isConstrained(shape)) return anyValue(grammar, syntax);
  return choice(...types.map((type) => typeExpression(context, shape, type, path, hint)));
}

/**
 * Without `type`, a schema lets everything through that its keywords do not speak of: `{"minLength": 3}` allows 7. Who writes
 * `minLength` means a string, so where keywords of some types are there, only those types are written.
 */
export function meantTypes(shape: Shape): readonly JsonType[] {
  const types = jsonTypes.filter((type) => shape.types.has(type));
  if (types.length < jsonTypes.length) return types;
  const constrained = types.filter((type) => constrains(shape, type));
  return constrained.length > 0 ? constrained : types;
}

/** Nothing is said of its values beyond their types, except of strings. */
export function isFree(shape: Shape): boolean {
  const { low, high, multiples } = shape.number;
  if (shape.values !== undefined) return shape.values.every((value) => typeof value === "string");
  return jsonTypes.every((type) => {
    if (!shape.types.has(type) || type === "string") return true;
    return type === "number"
      ? low === undefined && high === undefined && multiples.length === 0
      : !constrains(shape, type);
  });
}

export function isFreeString(shape: Shape): boolean {
  return !constrains(shape, "string");
}

export function isConstrained(shape: Shape): boolean {
  return jsonTypes.some((type) => constrains(shape, type));
}

function constrains(shape: Shape, type: JsonType): boolean {
  const { number, string, array, object } = shape;
  switch (type) {
    case "number":
      return number.integer || number.low !== undefined || number.high !== undefined || number.multiples.length > 0;
    case "string":
      return string.min > 0 || string.max !== null || string.patterns.length > 0 || string.formats.length > 0;
    case "array":
      return array.first.length > 0 || array.rest !== undefined || array.min > 0 || array.max !== null || array.closed;
    case "object":
      return (
        object.properties.size > 0 ||
        object.required.size > 0 ||
        object.additional !== undefined ||
        object.closed ||
        object.patterns.length > 0 ||
        object.names.length > 0 ||
        object.min > 0 ||
        object.max !== null
      );
    default:
      return false;
  }
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
  const { syntax } = context;
  const comma = sequence(text(","), syntax.space);
  const items = limits.first.map((parts, i) => valueExpression(context, parts, `${hint}-${i}`));
  // Where the first items are described and the others are not, no others are written unless they must be.
  const others = limits.rest ?? (limits.closed || (items.length > 0 && limits.min <= items.length) ? null : []);
  const further = others === null ? never : valueExpression(context, others, `${hint}-item`);
  const after = (position: number): Expression => {
    const item = items[position];
    const mayEnd = position >= limits.min;
    const mustEnd = limits.max !== null && position >= limits.max;
    if (mustEnd) return text("");
    if (item === undefined) {
      const most = limits.max === null ? null : limits.max - position;
      const least = Math.max(0, limits.min - position);
      if (position > 0) return repeat(sequence(comma, further), least, most);
      const several = sequence(
        further,
        repeat(sequence(comma, further), Math.max(0, least - 1), most === null ? null : most - 1),
      );
      return least === 0 ? optional(several) : several;
    }
    const rest = sequence(...(position > 0 ? [comma] : []), item, after(position + 1));
    return mayEnd ? optional(rest) : rest;
  };
  return sequence(text("["), syntax.space, after(0), syntax.space, text("]"));
}

/** One value, written out. */
function literal(syntax: ValueSyntax, value: unknown): Expression {
  const comma = sequence(text(","), syntax.space);
  const separated = (items: readonly Expression[]): Expression =>
    sequence(...items.flatMap((item, i) => (i === 0 ? [item] : [comma, item])));
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
