import { isObject } from "../../generation/json.ts";
import { invalidRequest } from "../../generation/failure.ts";
import type { JsonSchema } from "../../generation/message.ts";

/**
 * OpenAI's conditions for a strict schema: every object is closed (`additionalProperties: false`) and requires all its properties.
 * Only profile `exact` insists; a local grammar needs neither.
 *
 * `subject` is what the message names ("function 'f'"), `param` and `code` those of the error. Contexts are told as Python tuples,
 * as OpenAI does.
 */
export function checkStrictSchema(schema: JsonSchema, subject: string, param: string, code: string): void {
  const problem = strictProblem(schema, []);
  if (problem !== null) throw invalidRequest(`Invalid schema for ${subject}: ${problem}`, param, code);
}

/** Deeper than any schema that a person writes, so that recursion ends for hostile ones. */
const deepest = 500;

function strictProblem(schema: unknown, context: readonly string[]): string | null {
  if (!isObject(schema)) return null;
  if (context.length > deepest) return "the schema is nested too deeply.";
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  if (schema["type"] === "object" || schema["properties"] !== undefined) {
    const problem = objectProblem(schema, Object.keys(properties));
    if (problem !== null) return `In context=${tuple(context)}, ${problem}`;
  }
  return (
    firstProblem(Object.entries(properties), [...context, "properties"]) ??
    firstProblem(Object.entries(isObject(schema["$defs"]) ? schema["$defs"] : {}), [...context, "$defs"]) ??
    strictProblem(schema["items"], [...context, "items"]) ??
    firstProblem(Object.entries(Array.isArray(schema["anyOf"]) ? schema["anyOf"] : []), [...context, "anyOf"])
  );
}

function objectProblem(schema: Readonly<Record<string, unknown>>, names: readonly string[]): string | null {
  if (schema["additionalProperties"] !== false) {
    return "'additionalProperties' is required to be supplied and to be false.";
  }
  const required: readonly unknown[] = Array.isArray(schema["required"]) ? schema["required"] : [];
  const missing = names.find((name) => !required.includes(name));
  return missing === undefined
    ? null
    : `'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'.`;
}

function firstProblem(schemas: readonly (readonly [string, unknown])[], context: readonly string[]): string | null {
  for (const [name, schema] of schemas) {
    const problem = strictProblem(schema, [...context, name]);
    if (problem !== null) return problem;
  }
  return null;
}

/** A Python tuple of strings: `()`, `('a',)`, `('a', 'b')`. */
function tuple(parts: readonly string[]): string {
  const quoted = parts.map((part) => `'${part}'`);
  return quoted.length === 1 ? `(${quoted[0]},)` : `(${quoted.join(", ")})`;
}
