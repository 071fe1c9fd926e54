import type { ErrorObject } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { RegexMatcher } from "../../../formats/grammar/regex-matcher.ts";
import type { JsonSchema } from "../../../core/message.ts";

/** A client's patterns are never given to an engine that backtracks: one of ten characters can hold that for hours. */
const linearPatterns = Object.assign((pattern: string) => new RegexMatcher(pattern), { code: "linearPatterns" });

/**
 * What is wrong with a JSON text by a client's schema; null: nothing. Throws for a schema that cannot be used, which includes patterns
 * with look-around, back references or word boundaries.
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
  return validate(JSON.parse(json)) ? null : told(validate.errors);
}

function isBoolean(schema: JsonSchema): schema is boolean {
  return schema === true || schema === false;
}

/** `$async` is a word of ajv's own: it would answer with a promise. */
function synchronous(schema: Exclude<JsonSchema, boolean>): Record<string, unknown> {
  const { $async: _, ...rest } = schema;
  return rest;
}

/** By the schema's place, which the client wrote: the answer's holds names that the model wrote, and logs keep nothing of an answer. */
function told(errors: readonly ErrorObject[] | null | undefined): string {
  return (errors ?? []).map(({ schemaPath, message }) => `${schemaPath} ${message}`).join("; ");
}
