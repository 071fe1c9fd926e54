import { jsonTypes, type JsonType, type Shape } from "./schema-shape.ts";

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

/** Whether keywords for values of this type are there. */
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
