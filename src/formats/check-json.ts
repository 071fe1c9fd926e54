import type { ErrorObject } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { RegexMatcher } from "./grammar/regex-matcher.ts";
import type { JsonSchema } from "../core/message.ts";

/** Client patterns are not run by a backtracking engine, in which a pattern of ten characters can take hours. */
const linearPatterns = Object.assign((pattern: string) => new RegexMatcher(pattern), { code: "linearPatterns" });

/**
 * Validates a JSON text against a client's schema. Returns the errors, or null if it is valid. Throws for an unsupported schema, such as
 * one with patterns that use look-around, back references or word boundaries.
 */
export function checkJson(json: string, schema: JsonSchema): string | null {
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    validateSchema: false,
    logger: false,
    code: { regExp: linearPatterns },
  });
  formats.default(ajv);
  const validate = ajv.compile(isBoolean(schema) ? schema : synchronous(schema));
  return validate(JSON.parse(json)) ? null : describeErrors(validate.errors);
}

function isBoolean(schema: JsonSchema): schema is boolean {
  return schema === true || schema === false;
}

/** Removes `$async`, an extension of ajv that makes it return a promise. */
function synchronous(schema: Exclude<JsonSchema, boolean>): Record<string, unknown> {
  const { $async: _, ...rest } = schema;
  return rest;
}

/** Names paths in the schema: paths in the answer contain names from the model, and logs must not contain text of an answer. */
function describeErrors(errors: readonly ErrorObject[] | null | undefined): string {
  return (errors ?? []).map(({ schemaPath, message }) => `${schemaPath} ${message}`).join("; ");
}
