import { choice, empty, never, optional, repeat, sequence, text, type Expression } from "./expression.ts";
import { membersInOrder } from "./members-in-order.ts";
import type { ArrayLimits, ObjectLimits, Parts, Shape } from "./schema-shape.ts";
import { partsOf } from "./shape-accepts.ts";
import { rawStrings } from "./strings.ts";
import { until } from "./until.ts";
import { asRaw } from "./value-syntax.ts";
import { isConstrained, meantTypes } from "./shape-constraints.ts";
import { shapeExpression, type ValueContext } from "./value-expression.ts";

/** How a format nests tags: `open` key `keyEnd` … `open` `/` key `keyEnd`; an array's members are called `item`. */
export interface NestedTags {
  readonly open: string;
  readonly keyEnd: string;
  readonly item: string;
}

/** The tag that a value stands in: what closes it, and the name of the parameter around all, whose close ends all. */
interface Around {
  readonly close: string;
  readonly outer: string;
}

/**
 * A value and its close. Objects and arrays with members are tags, empty ones JSON; where a string is allowed, all is a string, as
 * the reader has it (minimax-m3).
 */
export function nestedValue(context: ValueContext, tags: NestedTags, parts: Parts, around: Around): Expression {
  const { grammar, reader } = context;
  // Anything at all: text, JSON, or tags within tags.
  if (parts.length === 0) return until(grammar, around.close);
  const key = `${reader.scope} nested ${JSON.stringify(around)} ${JSON.stringify(parts.map((part) => part.schema))}`;
  return grammar.shared(key, "nested", () =>
    choice(...reader.shapes(parts).map((shape) => shapeValue(context, tags, shape, parts[0]?.path ?? "", around))),
  );
}

function shapeValue(
  context: ValueContext,
  tags: NestedTags,
  shape: Shape,
  path: string,
  { close, outer }: Around,
): Expression {
  const raw = rawStrings(context.grammar, { open: "", close, forbidden: [tags.open] });
  const types = shape.values === undefined ? meantTypes(shape) : [...shape.types];
  const mayBeString = types.includes("string");
  return choice(
    ...types.map((type) => {
      const only: Shape = { ...shape, types: new Set([type]) };
      if (type === "string")
        return shapeExpression({ ...context, syntax: asRaw(context.syntax, raw) }, only, path, "value");
      const isScalar = type !== "object" && type !== "array";
      if (isScalar || mayBeString || shape.values !== undefined || !isConstrained(only)) {
        return sequence(shapeExpression(context, only, path, "value"), text(close));
      }
      return sequence(
        type === "object" ? members(context, tags, shape.object, outer) : items(context, tags, shape.array, outer),
        text(close),
      );
    }),
  );
}

function members(context: ValueContext, tags: NestedTags, limits: ObjectLimits, outer: string): Expression {
  const names = [...new Set([...limits.properties.keys(), ...limits.required])];
  const declared = names.map((name) => ({
    // A close of the parameter's own name would end the parameter.
    expression:
      writable(name, tags) && name !== outer
        ? tagged(context, tags, name, partsOf(context.reader, limits, name), outer)
        : never,
    required: limits.required.has(name),
  }));
  const body = membersInOrder(context, {
    members: declared,
    other: never,
    between: empty,
    limits: { ...limits, min: Math.max(1, limits.min) },
    hint: "nested",
  });
  // No tags would be read as an empty string.
  const none = limits.required.size === 0 && limits.min === 0 ? text("{}") : never;
  return choice(none, body);
}

function items(context: ValueContext, tags: NestedTags, limits: ArrayLimits, outer: string): Expression {
  if (tags.item === outer) return limits.min === 0 ? text("[]") : never;
  const first = limits.first.map((parts) => tagged(context, tags, tags.item, parts, outer));
  const open = limits.rest ?? (limits.closed || first.length > 0 ? null : []);
  const further = open === null ? never : tagged(context, tags, tags.item, open, outer);
  const least = Math.max(1, limits.min);
  const from = (position: number): Expression => {
    if (limits.max !== null && position >= limits.max) return empty;
    const item = first[position];
    if (item === undefined) {
      return repeat(further, Math.max(0, least - position), limits.max === null ? null : limits.max - position);
    }
    const rest = sequence(item, from(position + 1));
    return position >= least ? optional(rest) : rest;
  };
  const none = limits.min === 0 ? text("[]") : never;
  return limits.max === 0 ? none : choice(none, from(0));
}

function tagged(context: ValueContext, tags: NestedTags, name: string, parts: Parts, outer: string): Expression {
  const close = `${tags.open}/${name}${tags.keyEnd}`;
  return sequence(text(`${tags.open}${name}${tags.keyEnd}`), nestedValue(context, tags, parts, { close, outer }));
}

function writable(name: string, tags: NestedTags): boolean {
  return name !== "" && name.trim() === name && !/[<>\n/]/.test(name) && !name.includes(tags.keyEnd);
}
