import { isObject } from "../../core/json.ts";

type Schema = Readonly<Record<string, unknown>>;

/** Steps into a schema, beyond any that a person writes; recursion must end for schemas that want it not to. */
const deepest = 200;

/**
 * A schema as OpenAI makes it strict where the client does not say whether it is: every object closed and all its properties required.
 * Null: it has objects that are meant to be open, and cannot be made strict. Source: 84 recorded requests with their
 * responses; new members stand behind those that are there.
 */
export function madeStrict(schema: Schema): Schema | null {
  try {
    return strictObject(schema, 0);
  } catch (error) {
    if (error instanceof MeantOpen) return null;
    throw error;
  }
}

class MeantOpen extends Error {}

function strictObject(schema: Schema, depth: number): Schema {
  if (depth > deepest) throw new MeantOpen();
  // Without a prototype: a member named "__proto__" is a member like any other.
  const made: Record<string, unknown> = Object.create(null);
  for (const [keyword, value] of Object.entries(schema)) made[keyword] = strictMember(keyword, value, depth);
  if (schema["type"] !== "object" && schema["properties"] === undefined) return made;
  const { additionalProperties: others, properties } = schema;
  if ((others !== undefined && others !== false) || schema["patternProperties"] !== undefined) throw new MeantOpen();
  made["additionalProperties"] = false;
  made["required"] = Object.keys(isObject(properties) ? properties : {});
  return made;
}

function strictMember(keyword: string, value: unknown, depth: number): unknown {
  switch (keyword) {
    case "properties":
    case "$defs":
    case "definitions":
      if (!isObject(value)) return value;
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, strictValue(inner, depth)]));
    case "items":
      return strictValue(value, depth);
    case "anyOf":
    case "oneOf":
    case "allOf":
      return Array.isArray(value) ? value.map((inner) => strictValue(inner, depth)) : value;
    default:
      return value;
  }
}

function strictValue(value: unknown, depth: number): unknown {
  return isObject(value) ? strictObject(value, depth + 1) : value;
}
