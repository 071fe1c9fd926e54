import type { AnySchema, ErrorObject } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { isObject } from "../../wire/core/json.ts";
import type { JsonSchema } from "../../wire/core/message.ts";
import { RegexError } from "./grammar/regex-syntax.ts";
import { RegexMatcher } from "./grammar/regex-matcher.ts";

interface Matcher {
  test(text: string): boolean;
}

/** Client patterns are not run by a backtracking engine, in which a pattern of ten characters can take hours. */
const linearPatterns = Object.assign((pattern: string) => new RegexMatcher(pattern), { code: "linearPatterns" });

/** Runs a pattern with look-around or back references by JavaScript's engine: only where the caller limits the time. */
const anyPatterns = Object.assign(
  (pattern: string, flags: string): Matcher => {
    try {
      return new RegexMatcher(pattern);
    } catch (error) {
      if (!(error instanceof RegexError)) throw error;
      return new RegExp(pattern, flags);
    }
  },
  { code: "anyPatterns" },
);

/**
 * Validates a JSON text against a client's schema. Returns the errors, or null if it is valid. Throws for an unsupported schema, such as
 * one with patterns that use look-around, back references or word boundaries.
 */
export function checkJson(json: string, schema: JsonSchema): string | null {
  return errorsOf(JSON.parse(json), schema, linearPatterns);
}

/** The judgment of a JSON text. `repaired`: a text that is valid; undefined: there is no simple repair. */
export type JsonJudgment = null | { readonly errors: string; readonly repaired?: string };

/**
 * Validates a JSON text against a client's schema, and repairs what models get wrong without a grammar: a number or a boolean that is
 * written as a text or the reverse, and null for a member that is optional. Returns null if the text is valid. Patterns of any kind
 * are run, so the caller must limit the time. Throws for a schema that cannot be compiled.
 */
export function judgeJson(json: string, schema: JsonSchema): JsonJudgment {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { errors: "the text is not JSON" };
  }
  const errors = errorsOf(value, schema, anyPatterns);
  if (errors === null) return null;
  const bare = withoutNulls(value, schema, schema, 0);
  const coerced: unknown = structuredClone(bare);
  compiled(schema, anyPatterns, true)(coerced);
  const isRepaired = keepsNulls(bare, coerced) && errorsOf(coerced, schema, anyPatterns) === null;
  return isRepaired ? { errors, repaired: JSON.stringify(coerced) } : { errors };
}

function errorsOf(
  value: unknown,
  schema: JsonSchema,
  patterns: typeof anyPatterns | typeof linearPatterns,
): string | null {
  const validate = compiled(schema, patterns, false);
  return validate(value) ? null : describeErrors(validate.errors);
}

function compiled(schema: JsonSchema, regExp: typeof anyPatterns | typeof linearPatterns, coerceTypes: boolean) {
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    validateSchema: false,
    logger: false,
    coerceTypes,
    code: { regExp },
  });
  formats.default(ajv);
  return ajv.compile((isObject(schema) ? synchronous(schema) : schema) as AnySchema);
}

/** Removes `$async`, an extension of ajv that makes it return a promise. */
function synchronous(schema: Exclude<JsonSchema, boolean>): Record<string, unknown> {
  const { $async: _, ...rest } = schema;
  return rest;
}

/** The errors of an answer that are described, and the characters of each: a list of a million items can have a million errors. */
const [maxErrors, maxErrorLength] = [20, 300];

/** Names paths in the schema: paths in the answer contain names from the model, and logs must not contain text of an answer. */
function describeErrors(errors: readonly ErrorObject[] | null | undefined): string {
  const all = errors ?? [];
  const shown = all.slice(0, maxErrors).map(({ schemaPath, message }) => {
    const text = `${schemaPath} ${message}`;
    return text.length > maxErrorLength ? `${text.slice(0, maxErrorLength)}...` : text;
  });
  return [...shown, ...(all.length > maxErrors ? [`and ${all.length - maxErrors} more`] : [])].join("; ");
}

/** Removes members that are null and not required. */
function withoutNulls(value: unknown, schema: unknown, root: JsonSchema, depth: number): unknown {
  const { properties, required, items, $ref } = isObject(schema) ? schema : {};
  if (depth > 100) return value;
  if (typeof $ref === "string") return withoutNulls(value, definition(root, $ref), root, depth + 1);
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item, items, root, depth + 1));
  if (!isObject(value) || !isObject(properties)) return value;
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, member]) => member !== null || needed.includes(name) || allowsNull(properties[name]))
      .map(([name, member]) => [name, withoutNulls(member, properties[name], root, depth + 1)]),
  );
}

function allowsNull(schema: unknown): boolean {
  if (!isObject(schema)) return schema === true;
  const { type } = schema;
  return type === undefined || type === "null" || (Array.isArray(type) && type.includes("null"));
}

/** `$defs/NAME` and `definitions/NAME`. */
function definition(root: JsonSchema, reference: string): unknown {
  const [, list = "", name = ""] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(reference) ?? [];
  const group = isObject(root) && Object.hasOwn(root, list) ? root[list] : undefined;
  return isObject(group) && Object.hasOwn(group, name) ? group[name] : undefined;
}

/** Whether every null is still null: a number or a text in its place would be invented. */
function keepsNulls(before: unknown, after: unknown): boolean {
  if (before === null || after === null) return before === after;
  if (Array.isArray(before)) return Array.isArray(after) && before.every((item, at) => keepsNulls(item, after[at]));
  if (!isObject(before) || !isObject(after)) return true;
  return Object.keys(before).every((name) => keepsNulls(before[name], after[name]));
}
