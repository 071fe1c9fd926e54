import type { JsonSchema } from "../../../wire/core/message.ts";
import type { Bound, NumberLimits } from "./number-expression.ts";

/** A schema without combinators: the constraints on a value by its type. A schema is a list of alternative shapes. */
export interface Shape {
  readonly types: ReadonlySet<JsonType>;
  /** `enum` and `const`: the allowed values. */
  readonly values?: readonly unknown[];
  readonly number: NumberLimits;
  readonly string: StringLimits;
  readonly array: ArrayLimits;
  readonly object: ObjectLimits;
}

export const jsonTypes = ["string", "number", "object", "array", "boolean", "null"] as const;
export type JsonType = (typeof jsonTypes)[number];

/** A schema and its path. */
export interface Part {
  readonly schema: JsonSchema;
  readonly path: string;
}

/** Schemas that must all hold for one value; empty: any value. */
export type Parts = readonly Part[];

export interface StringLimits {
  readonly min: number;
  readonly max: number | null;
  readonly patterns: readonly { readonly pattern: string; readonly path: string }[];
  readonly formats: readonly { readonly name: string; readonly path: string }[];
  /** Lark grammars of custom tools. */
  readonly grammars: readonly { readonly definition: string; readonly path: string }[];
}

export interface ArrayLimits {
  /** The schemas of the first items. */
  readonly first: readonly Parts[];
  /** The schemas of all further items; absent if the schema does not describe them. */
  readonly rest?: Parts;
  /** `unevaluatedItems` forbids items that no keyword describes. */
  readonly closed: boolean;
  readonly min: number;
  readonly max: number | null;
}

export interface ObjectLimits {
  readonly properties: ReadonlyMap<string, Parts>;
  readonly required: ReadonlySet<string>;
  /** The schemas of undeclared properties; absent if the schema does not describe them. */
  readonly additional?: Parts;
  /** Properties that no keyword describes are not written, because others are declared or `unevaluatedProperties` forbids them. */
  readonly closed: boolean;
  readonly patterns: readonly { readonly pattern: string; readonly parts: Parts; readonly path: string }[];
  readonly names: Parts;
  readonly min: number;
  readonly max: number | null;
  /** The path of `minProperties`, for reports. */
  readonly path: string;
}

/** Any value. */
export const anything: Shape = {
  types: new Set(jsonTypes),
  number: { integer: false, multiples: [] },
  string: { min: 0, max: null, patterns: [], formats: [], grammars: [] },
  array: { first: [], closed: false, min: 0, max: null },
  object: {
    properties: new Map(),
    required: new Set(),
    closed: false,
    patterns: [],
    names: [],
    min: 0,
    max: null,
    path: "",
  },
};

/** The shape of what satisfies both. It may be unsatisfiable; then its expression is `never`. */
export function meet(a: Shape, b: Shape): Shape {
  const types = new Set([...a.types].filter((type) => b.types.has(type)));
  const values = meetValues(a.values, b.values);
  return {
    types,
    ...(values === undefined ? {} : { values }),
    number: {
      integer: a.number.integer || b.number.integer,
      multiples: [...new Set([...a.number.multiples, ...b.number.multiples])],
      ...bound("low", tighter(a.number.low, b.number.low, 1)),
      ...bound("high", tighter(a.number.high, b.number.high, -1)),
    },
    string: {
      min: Math.max(a.string.min, b.string.min),
      max: smaller(a.string.max, b.string.max),
      patterns: unique([...a.string.patterns, ...b.string.patterns], ({ pattern }) => pattern),
      formats: unique([...a.string.formats, ...b.string.formats], ({ name }) => name),
      grammars: unique([...a.string.grammars, ...b.string.grammars], ({ definition }) => definition),
    },
    array: meetArrays(a.array, b.array),
    object: meetObjects(a.object, b.object),
  };
}

function meetArrays(a: ArrayLimits, b: ArrayLimits): ArrayLimits {
  const size = Math.max(a.first.length, b.first.length);
  const first = Array.from({ length: size }, (_, i) => [
    ...(a.first[i] ?? a.rest ?? []),
    ...(b.first[i] ?? b.rest ?? []),
  ]);
  const rest = joined(a.rest, b.rest);
  return {
    first,
    ...(rest === undefined ? {} : { rest }),
    closed: a.closed || b.closed,
    min: Math.max(a.min, b.min),
    max: smaller(a.max, b.max),
  };
}

function meetObjects(a: ObjectLimits, b: ObjectLimits): ObjectLimits {
  const names = new Set([...a.properties.keys(), ...b.properties.keys()]);
  const properties = new Map(
    [...names].map((name) => [
      name,
      [...(a.properties.get(name) ?? a.additional ?? []), ...(b.properties.get(name) ?? b.additional ?? [])],
    ]),
  );
  const additional = joined(a.additional, b.additional);
  return {
    properties,
    required: new Set([...a.required, ...b.required]),
    ...(additional === undefined ? {} : { additional }),
    closed: a.closed || b.closed,
    patterns: [...a.patterns, ...b.patterns],
    names: [...a.names, ...b.names],
    min: Math.max(a.min, b.min),
    max: smaller(a.max, b.max),
    path: a.min >= b.min && a.path !== "" ? a.path : b.path,
  };
}

function meetValues(a?: readonly unknown[], b?: readonly unknown[]): readonly unknown[] | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const [few, many] = a.length <= b.length ? [a, canonicalSet(b)] : [b, canonicalSet(a)];
  return few.filter((value) => many.has(canonicalJson(value)));
}

const canonicalSets = new WeakMap<readonly unknown[], ReadonlySet<string>>();

/** The values of a list as canonical JSON, for look-ups. */
export function canonicalSet(values: readonly unknown[]): ReadonlySet<string> {
  let set = canonicalSets.get(values);
  if (!set) canonicalSets.set(values, (set = new Set(values.map((value) => canonicalJson(value)))));
  return set;
}

/** JSON text that is equal for equal values: keys are sorted. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== "object") return JSON.stringify(value);
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([x], [y]) => (x < y ? -1 : 1)))
      : member,
  );
}

function joined(a?: Parts, b?: Parts): Parts | undefined {
  return a === undefined || b === undefined ? (a ?? b) : [...a, ...b];
}

function smaller(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}

/** The stricter bound; `sign` is 1 for lower bounds, -1 for upper ones. */
function tighter(a: Bound | undefined, b: Bound | undefined, sign: number): Bound | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  if (a.value === b.value) return a.exclusive ? a : b;
  return (a.value - b.value) * sign > 0 ? a : b;
}

function bound<K extends string>(key: K, value: Bound | undefined): { [P in K]?: Bound } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: Bound });
}

function unique<T>(items: readonly T[], key: (item: T) => string): readonly T[] {
  return [...new Map(items.map((item) => [key(item), item])).values()];
}

/**
 * The types that are written. Without `type`, a schema accepts all values that its keywords do not apply to: `{"minLength": 3}` accepts 7.
 * The author of `minLength` means a string, so if there are keywords for some types, only those types are written.
 */
export function meantTypes(shape: Shape): readonly JsonType[] {
  const types = jsonTypes.filter((type) => shape.types.has(type));
  if (types.length < jsonTypes.length) return types;
  const constrained = types.filter((type) => constrains(shape, type));
  return constrained.length > 0 ? constrained : types;
}

/** Whether there are no constraints on the values except their types and those on strings. */
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

/** Whether there are keywords for values of this type. */
export function constrains(shape: Shape, type: JsonType): boolean {
  const { number, string, array, object } = shape;
  switch (type) {
    case "number":
      return number.integer || number.low !== undefined || number.high !== undefined || number.multiples.length > 0;
    case "string":
      return (
        string.min > 0 ||
        string.max !== null ||
        string.patterns.length > 0 ||
        string.formats.length > 0 ||
        string.grammars.length > 0
      );
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
