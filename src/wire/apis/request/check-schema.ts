import { isObject, type JsonObject } from "../../core/json.ts";
import { invalidRequest } from "../../core/failure.ts";
import type { JsonSchema } from "../../core/message.ts";
import { invalidType, patternMismatch, stringTooLong, tooManyProperties, valuePhrase } from "./refusals.ts";
import type * as z from "zod";
import type { Profile } from "../profile.ts";
import { anyObject } from "./shapes.ts";

/**
 * Throws `FailureError` for a schema that OpenAI refuses, with OpenAI's message: a `type` that JSON Schema does not have, an array without
 * `items`; and, in a `strict` schema, an object that is open or does not require all its properties, a schema without a type, a keyword that
 * grammars do not have, or a reference to anything but a top-level definition. Only profile `exact` checks this; local grammars do not need it.
 *
 * `subject` is what the message names ("function 'f'"), `param` and `code` are those of the error. Contexts are Python tuples, as in
 * OpenAI's messages. Sources: recordings of 2025 for closed objects and required properties; for types, error messages quoted in
 * https://github.com/musistudio/claude-code-router ("'web_search_20250305' is not valid under any of the given schemas."); for
 * references, https://github.com/dotnet/extensions/issues/6918 and https://github.com/openai/openai-node/issues/970; for keywords,
 * https://platform.openai.com/docs/guides/structured-outputs#supported-schemas.
 */
export function checkSchema(schema: JsonSchema, strict: boolean, { subject, param, code }: SchemaPlace): void {
  const problem =
    typeProblem(schema) ?? (strict ? strictProblem(schema, [], schema) : null) ?? itemsProblem(schema, []);
  if (problem !== null) throw invalidRequest(`Invalid schema for ${subject}: ${problem}`, param, code);
}

/** What the error for a schema names. */
interface SchemaPlace {
  readonly subject: string;
  readonly param: string;
  readonly code: string;
}

/**
 * Throws `FailureError` for a function's parameters that are no object. In profile `exact`, a schema that is not empty must say so. Source:
 * OpenAI's errors that users quote, with Python's `None` for a missing type.
 */
export function checkObjectSchema(
  schema: JsonObject,
  { judgesAsVendor }: Pick<Profile, "judgesAsVendor">,
  { subject, param, code }: SchemaPlace,
): void {
  const { type } = schema;
  const isMissing = type === undefined && judgesAsVendor && Object.keys(schema).length > 0;
  if (type === "object" || (type === undefined && !isMissing)) return;
  const got = isMissing ? '"None"' : JSON.stringify(type);
  const message = `Invalid schema for ${subject}: schema must be a JSON Schema of 'type: "object"', got 'type: ${got}'.`;
  throw invalidRequest(message, param, code);
}

const typeNames: ReadonlySet<unknown> = new Set(["array", "boolean", "integer", "null", "number", "object", "string"]);
/** Keywords whose value is a schema or a list of schemas, and those whose value maps names to schemas. */
const schemaKeywords =
  "items prefixItems additionalProperties contains propertyNames not if then else anyOf allOf oneOf".split(" ");
const mapKeywords = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

function typeProblem(root: JsonSchema): string | null {
  const type = unknownType(root);
  return type === undefined ? null : `${pythonText(type)} is not valid under any of the given schemas.`;
}

/** Returns the first `type` in a schema that is not one of JSON Schema's, or `undefined`. */
export function unknownType(root: unknown): unknown {
  for (const { type } of schemasIn(root)) {
    const names: readonly unknown[] = Array.isArray(type) ? type : [type];
    if (type !== undefined && (names.length === 0 || !names.every((name) => typeNames.has(name)))) return type;
  }
  return undefined;
}

/** Yields a schema and all schemas in it. */
export function* schemasIn(root: unknown): Generator<JsonObject> {
  const open: unknown[] = [root];
  for (const schema of open) {
    if (Array.isArray(schema)) for (const one of schema) open.push(one);
    if (!isObject(schema) || Array.isArray(schema)) continue;
    yield schema;
    for (const keyword of schemaKeywords) if (schema[keyword] !== undefined) open.push(schema[keyword]);
    for (const keyword of mapKeywords) {
      const schemas = schema[keyword];
      if (isObject(schemas)) for (const one of Object.values(schemas)) open.push(one);
    }
  }
}

/** Returns the value of a `type` as Python's `repr` writes it; a string is cut after 100 characters. */
function pythonText(value: unknown): string {
  if (typeof value === "string")
    return value.includes("'") ? JSON.stringify(value.slice(0, 100)) : `'${value.slice(0, 100)}'`;
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.slice(0, 10).map(pythonText).join(", ")}]`;
  return isObject(value) ? "{...}" : String(value);
}

/** The maximum depth of a schema. It limits the recursion for hostile schemas; real ones are less deep. */
const maxDepth = 500;

function strictProblem(schema: unknown, context: readonly string[], root: unknown): string | null {
  if (!isObject(schema)) return null;
  if (context.length > maxDepth) return "the schema is nested too deeply.";
  const inContext = (problem: string): string => `In context=${tuple(context)}, ${problem}`;
  const reference = referenceProblem(schema["$ref"], root);
  if (reference !== null) return inContext(reference);
  const refused = refusedKeywords.find((keyword) => schema[keyword] !== undefined);
  if (refused !== undefined) return inContext(`'${refused}' is not permitted.`);
  if (context.length > 0 && ["type", "$ref", "anyOf"].every((keyword) => schema[keyword] === undefined))
    return inContext("schema must have a 'type' key.");
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  if (schema["type"] === "object" || schema["properties"] !== undefined) {
    const problem = objectProblem(schema, Object.keys(properties));
    if (problem !== null) return inContext(problem);
  }
  return (
    firstProblem(Object.entries(properties), [...context, "properties"], root) ??
    firstProblem(Object.entries(isObject(schema["$defs"]) ? schema["$defs"] : {}), [...context, "$defs"], root) ??
    strictProblem(schema["items"], [...context, "items"], root) ??
    firstProblem(Object.entries(Array.isArray(schema["anyOf"]) ? schema["anyOf"] : []), [...context, "anyOf"], root)
  );
}

/** The keywords that a strict schema may not have. */
const refusedKeywords = "allOf oneOf not dependentRequired dependentSchemas if then else uniqueItems".split(" ");

/** Returns what is wrong with the first array without `items`, or `null`. Source: an error that many projects quote. */
function itemsProblem(schema: unknown, context: readonly string[]): string | null {
  if (!isObject(schema) || context.length > maxDepth) return null;
  if (schema["type"] === "array" && schema["items"] === undefined)
    return `In context=${tuple(context)}, array schema missing items.`;
  for (const keyword of ["properties", "$defs"]) {
    const schemas = schema[keyword];
    for (const [name, inner] of Object.entries(isObject(schemas) ? schemas : {})) {
      const problem = itemsProblem(inner, [...context, keyword, name]);
      if (problem !== null) return problem;
    }
  }
  return itemsProblem(schema["items"], [...context, "items"]);
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

/** Returns what is wrong with a `$ref`, or `null`. It may point to the whole schema or to one of its top-level definitions. */
function referenceProblem(reference: unknown, root: unknown): string | null {
  if (typeof reference !== "string" || reference === "#") return null;
  const [, keyword = "", escaped = ""] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(reference) ?? [];
  if (keyword === "") return "reference can only point to definitions defined at the top level of the schema.";
  const name = escaped.replaceAll("~1", "/").replaceAll("~0", "~");
  const definitions = isObject(root) ? root[keyword] : undefined;
  if (isObject(definitions) && Object.hasOwn(definitions, name)) return null;
  return `reference to component '${reference}' which was not found in the schema.`;
}

function firstProblem(
  schemas: readonly (readonly [string, unknown])[],
  context: readonly string[],
  root: unknown,
): string | null {
  for (const [name, schema] of schemas) {
    const problem = strictProblem(schema, [...context, name], root);
    if (problem !== null) return problem;
  }
  return null;
}

/** Returns a Python tuple of strings: `()`, `('a',)`, `('a', 'b')`. */
function tuple(parts: readonly string[]): string {
  const quoted = parts.map((part) => `'${part}'`);
  return quoted.length === 1 ? `(${quoted[0]},)` : `(${quoted.join(", ")})`;
}

/** Checks the name of a function or schema as OpenAI does. Throws `FailureError`. */
export function checkName(path: string, name: string): void {
  if (!/^[a-zA-Z0-9_-]+$/.test(name)) throw patternMismatch(path, "^[a-zA-Z0-9_-]+$");
  if (name.length > 64) throw stringTooLong(path, 64, name.length);
}

/** Throws `FailureError` unless there are at most 16 strings of at most 512 characters. Source: OpenAI's specification, `Metadata`. */
export function checkMetadata(value: Readonly<Record<string, unknown>>): asserts value is Record<string, string> {
  const { length } = Object.keys(value);
  if (length > 16) throw tooManyProperties("metadata", 16, length);
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== "string") throw invalidType(`metadata.${key}`, "a string", valuePhrase(text));
    if (text.length > 512) throw stringTooLong(`metadata.${key}`, 512, text.length);
  }
}

/** An object. `checkMetadata` counts its members before it checks them, so that a million invalid ones cost little. */
export const metadataShape: z.ZodType<Record<string, unknown>> = anyObject();
