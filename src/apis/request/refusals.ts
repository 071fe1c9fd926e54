import type { FailureError } from "../../core/failure.ts";
import { missingModel } from "../failures.ts";
import { invalidRequest } from "../../core/failure.ts";
import { maxUnknownMembers } from "./size-limits.ts";

/**
 * OpenAI's errors for invalid parameters: its messages, `param` and `code`. Sources: recordings of 2025 and 2026, and messages that users
 * quote in issue threads. `path` is the full path, such as `messages[1].content[0].type`.
 */

export function missingParameter(path: string): FailureError {
  return invalidRequest(`Missing required parameter: '${path}'.`, path, "missing_required_parameter");
}

/** `expected` and `got` have articles: "an integer", "one of a string or array of objects". */
export function invalidType(path: string, expected: string, got: string): FailureError {
  const message = `Invalid type for '${path}': expected ${expected}, but got ${got} instead.`;
  return invalidRequest(message, path, "invalid_type");
}

export function unsupportedEnumValue(path: string, value: string, supported: readonly string[]): FailureError {
  const message = `Invalid value: '${value}'. Supported values are: ${listed(supported, "and")}.`;
  return invalidRequest(message, path, "invalid_value");
}

export function numberBelow(path: string, kind: "integer" | "decimal", minimum: number, value: number): FailureError {
  const message = `Invalid '${path}': ${kind} below minimum value. Expected a value >= ${minimum}, but got ${value} instead.`;
  return invalidRequest(message, path, `${kind}_below_min_value`);
}

export function numberAbove(path: string, kind: "integer" | "decimal", maximum: number, value: number): FailureError {
  const message = `Invalid '${path}': ${kind} above maximum value. Expected a value <= ${maximum}, but got ${value} instead.`;
  return invalidRequest(message, path, `${kind}_above_max_value`);
}

export function emptyArray(path: string): FailureError {
  const message = `Invalid '${path}': empty array. Expected an array with minimum length 1, but got an empty array instead.`;
  return invalidRequest(message, path, "empty_array");
}

export function arrayTooLong(path: string, maximum: number, length: number): FailureError {
  const message = `Invalid '${path}': array too long. Expected an array with maximum length ${maximum}, but got an array with length ${length} instead.`;
  return invalidRequest(message, path, "array_above_max_length");
}

export function emptyString(path: string): FailureError {
  const message = `Invalid '${path}': empty string. Expected a string with minimum length 1, but got an empty string instead.`;
  return invalidRequest(message, path, "empty_string");
}

export function stringTooLong(path: string, maximum: number, length: number): FailureError {
  const message = `Invalid '${path}': string too long. Expected a string with maximum length ${maximum}, but got a string with length ${length} instead.`;
  return invalidRequest(message, path, "string_above_max_length");
}

export function patternMismatch(path: string, pattern: string): FailureError {
  const message = `Invalid '${path}': string does not match pattern. Expected a string that matches the pattern '${pattern}'.`;
  return invalidRequest(message, path, "invalid_value");
}

export function tooManyProperties(path: string, maximum: number, count: number): FailureError {
  const message = `Invalid '${path}': too many properties. Expected an object with at most ${maximum} properties, but got an object with ${count} properties instead.`;
  return invalidRequest(message, path, "object_above_max_properties");
}

/** For an invalid value of the right type. `reason` is the clause after the colon. */
export function invalidValue(path: string, reason: string, code: string | null = null): FailureError {
  return invalidRequest(`Invalid value for '${path}': ${reason}`, path, code);
}

/** For an unsupported parameter that cannot be ignored, because it would change the answer. */
export function unsupportedParameter(path: string): FailureError {
  const message = `Unsupported parameter: '${path}' is not supported with this model.`;
  return invalidRequest(message, path, "unsupported_parameter");
}

export function unsupportedValue(path: string, value: string): FailureError {
  const message = `Unsupported value: '${path}' does not support '${value}' with this model.`;
  return invalidRequest(message, path, "unsupported_value");
}

/** Lists names in quotes as OpenAI does: `'a'`, `'a' and 'b'`, `'a', 'b', and 'c'`. */
export function listed(names: readonly string[], word: "and" | "or"): string {
  const quoted = names.map((name) => `'${name}'`);
  if (quoted.length < 3) return quoted.join(` ${word} `);
  return `${quoted.slice(0, -1).join(", ")}, ${word} ${quoted.at(-1)}`;
}

export function tooManyUnknown(): FailureError {
  return invalidRequest(
    `The request body has more than ${maxUnknownMembers} unknown members.`,
    null,
    "request_too_large",
  );
}

/** Returns the body of a request. Throws `FailureError` if it is not an object. */
export function objectBody(body: unknown): Readonly<Record<string, unknown>> {
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Record<string, unknown>;
  throw invalidRequest("Invalid type for the request body: expected an object.", null, "invalid_type");
}

/** Returns the member `model` of an embeddings or rerank request. Throws `FailureError` if it is missing or not a string. */
export function requiredModel(model: unknown): string {
  if (model === undefined || model === null || model === "") throw missingModel();
  if (typeof model !== "string") throw invalidType("model", "a string", typePhrase(model));
  return model;
}

/** Returns the JSON type of a value, with an article. */
export function typePhrase(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
