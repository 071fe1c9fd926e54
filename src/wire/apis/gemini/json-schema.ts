import { isObject, type JsonObject } from "../../core/json.ts";
import type { JsonSchema } from "../../core/message.ts";

/** The depth of schemas, so that a hostile one does not overflow the stack. */
export const maxDepth = 200;

const countKeywords: ReadonlySet<string> = new Set([
  "maxItems",
  "minItems",
  "maxLength",
  "minLength",
  "maxProperties",
  "minProperties",
]);
/** Members by their other spelling. */
const otherNames: Readonly<Record<string, string>> = {
  any_of: "anyOf",
  max_items: "maxItems",
  min_items: "minItems",
  max_length: "maxLength",
  min_length: "minLength",
  max_properties: "maxProperties",
  min_properties: "minProperties",
  property_ordering: "propertyOrdering",
};

const schemaNames: ReadonlySet<string> = new Set(
  "type format title description nullable enum items properties required pattern example anyOf propertyOrdering default minimum maximum"
    .split(" ")
    .concat(...countKeywords),
);

/** Whether Google's schemas have a member, in either spelling. */
export function isSchemaName(name: string): boolean {
  return schemaNames.has(Object.hasOwn(otherNames, name) ? (otherNames[name] as string) : name);
}

/**
 * Returns a schema of Google's (the subset of OpenAPI in `parameters` and `responseSchema`) as JSON Schema: types in lower case, `nullable` as
 * a type, counts as numbers, properties in the order of `propertyOrdering`. Members of JSON Schema that it does not have are kept. Source:
 * https://ai.google.dev/api/caching#Schema.
 */
export function asJsonSchema(given: unknown, depth = 0): JsonSchema {
  if (!isObject(given) || depth > maxDepth) return typeof given === "boolean" ? given : {};
  const inner = (value: unknown): JsonSchema => asJsonSchema(value, depth + 1);
  const schema: Record<string, unknown> = {};
  let [isNullable, order]: [boolean, readonly unknown[]] = [false, []];
  for (const [written, value] of Object.entries(given)) {
    const name = Object.hasOwn(otherNames, written) ? (otherNames[written] as string) : written;
    if (value === undefined || value === null || written === "__proto__") continue;
    if (name === "type") schema["type"] = typeOf(value);
    else if (name === "nullable") isNullable = value === true;
    else if (name === "propertyOrdering") order = Array.isArray(value) ? value : [];
    else if (name === "example") schema["examples"] = [value];
    else if (name === "properties" && isObject(value))
      schema[name] = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, inner(one)]));
    else if ((name === "anyOf" || name === "oneOf" || name === "allOf") && Array.isArray(value))
      schema[name] = value.map(inner);
    else if (name === "items") schema[name] = inner(value);
    else if (countKeywords.has(name)) schema[name] = Number(value);
    // `enum` is a format of texts that have an `enum`.
    else if (name !== "format" || value !== "enum") schema[name] = value;
  }
  if (order.length > 0 && isObject(schema["properties"])) schema["properties"] = inOrder(schema["properties"], order);
  return isNullable ? nullable(schema) : schema;
}

function typeOf(type: unknown): unknown {
  if (Array.isArray(type)) return type.map(typeOf);
  return typeof type === "string" ? type.toLowerCase() : type;
}

function nullable(schema: JsonObject): JsonObject {
  const { type, enum: values } = schema;
  if (typeof type !== "string") return { anyOf: [schema, { type: "null" }] };
  return { ...schema, type: [type, "null"], ...(Array.isArray(values) && { enum: [...(values as unknown[]), null] }) };
}

function inOrder(properties: JsonObject, order: readonly unknown[]): JsonObject {
  const first = order.filter((name): name is string => typeof name === "string" && Object.hasOwn(properties, name));
  return { ...Object.fromEntries(first.map((name) => [name, properties[name]])), ...properties };
}
