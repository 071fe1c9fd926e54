import type { SchemaReader } from "./flatten-schema.ts";
import { decimalOf } from "./number-expression.ts";
import { canonicalJson, canonicalSet, type JsonType, type Parts, type Shape } from "./schema-shape.ts";

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
