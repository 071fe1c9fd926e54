import { type FailureError, invalidRequest } from "../../core/failure.ts";
import { missingModel } from "../failures.ts";
import { integerMark, maxUnknownMembers } from "./shapes.ts";
import type * as z from "zod";

/**
 * OpenAI's errors for invalid parameters: its messages, `param` and `code`. Sources: recordings of 2025 and 2026, and messages that users
 * quote in issue threads. `path` is the full path, such as `messages[1].content[0].type`.
 */

export function missingParameter(path: string): FailureError {
  return invalidRequest(`Missing required parameter: '${path}'.`, path, "missing_required_parameter");
}

/** `meant`: the names that the client may have meant. OpenAI lists names within two edits that the request does not have. */
export function unknownParameter(path: string, meant: readonly string[] = []): FailureError {
  const hint = meant.length === 0 ? "" : ` Did you mean ${listed(meant, "or")}?`;
  return invalidRequest(`Unknown parameter: '${path}'.${hint}`, path, "unknown_parameter");
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

/** `shown`: the value as the message has it. `supported`: the sentence that follows. */
export function unsupportedValue(path: string, shown: string, supported = ""): FailureError {
  const message = `Unsupported value: '${path}' does not support ${shown} with this model. ${supported}`;
  return invalidRequest(message.trimEnd(), path, "unsupported_value");
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

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Returns OpenAI's error for zod's first issue with a parameter. `value`: the value of the parameter. */
export function parameterFailure(name: string, value: unknown, issues: readonly Issue[]): FailureError {
  const [issue] = issues;
  return issue ? failureOf(issue, name, [], value) : invalidRequest(`Invalid value for '${name}'.`, name);
}

/** `before`: the path of the union that contains the issue. */
function failureOf(issue: Issue, name: string, before: Path, root: unknown): FailureError {
  const path = [...before, ...issue.path];
  const param = pathText(name, path);
  const value = valueAt(root, path);
  switch (issue.code) {
    case "invalid_type":
      if (value === undefined) return missingParameter(param);
      return invalidType(param, expectedPhrase(issue.message) ?? zodTypePhrase(issue.expected), valuePhrase(value));
    case "invalid_value":
      return wrongValue(param, value, issue.values.map(String));
    case "unrecognized_keys":
      return unknownParameter(pathText(name, [...path, ...issue.keys.slice(0, 1)]));
    case "too_small":
      return tooSmall(issue, param, value);
    case "too_big":
      return tooBig(issue, param, value);
    case "invalid_format":
      return patternMismatch(param, String(issue.pattern ?? "").replace(/^\/|\/[a-z]*$/g, ""));
    case "invalid_union":
      return unionFailure(issue, param, path, name, root);
    case "custom":
      return typeof issue.params?.["expected"] === "string"
        ? invalidType(param, issue.params["expected"], valuePhrase(value))
        : invalidRequest(issue.message, param, stringOrNull(issue.params?.["code"]));
    default:
      return invalidRequest(`Invalid value for '${param}'.`, param, "invalid_value");
  }
}

function unionFailure(
  issue: Extract<Issue, { code: "invalid_union" }>,
  param: string,
  path: Path,
  name: string,
  root: unknown,
): FailureError {
  const value = valueAt(root, path);
  if (issue.discriminator !== undefined && "options" in issue) {
    return value === undefined ? missingParameter(param) : wrongValue(param, value, (issue.options ?? []).map(String));
  }
  if (value === undefined) return missingParameter(param);
  // The option whose type fits the value has the best error.
  const option = issue.errors.find((errors) => errors[0] && !isTypeMismatch(errors[0], value));
  if (option?.[0]) return failureOf(option[0], name, path, root);
  return invalidType(param, expectedPhrase(issue.message) ?? "another type", valuePhrase(value));
}

function isTypeMismatch(issue: Issue, value: unknown): boolean {
  if (issue.path.length > 0) return false;
  if (issue.code === "invalid_value") return typeof issue.values[0] !== typeof value;
  return issue.code === "invalid_type";
}

function wrongValue(param: string, value: unknown, supported: readonly string[]): FailureError {
  if (value === undefined) return missingParameter(param);
  if (typeof value === "string") return unsupportedEnumValue(param, value, supported);
  const expected = supported.length > 1 ? `one of ${listed(supported, "or")}` : listed(supported, "or");
  return invalidType(param, expected, valuePhrase(value));
}

function tooSmall(issue: Extract<Issue, { code: "too_small" }>, param: string, value: unknown): FailureError {
  if (issue.origin === "array") return emptyArray(param);
  if (issue.origin === "string") return emptyString(param);
  return numberBelow(param, numberKind(issue), Number(issue.minimum), Number(value));
}

function tooBig(issue: Extract<Issue, { code: "too_big" }>, param: string, value: unknown): FailureError {
  const maximum = Number(issue.maximum);
  if (issue.origin === "array") return arrayTooLong(param, maximum, Array.isArray(value) ? value.length : 0);
  if (issue.origin === "string") return stringTooLong(param, maximum, String(value).length);
  return numberAbove(param, numberKind(issue), maximum, Number(value));
}

function numberKind(issue: Issue): "integer" | "decimal" {
  return issue.message === integerMark ? "integer" : "decimal";
}

/** Returns the phrase of `expecting`; zod's own messages are not shown to clients. */
function expectedPhrase(message: string): string | undefined {
  return message === "" || message.startsWith("Invalid input") ? undefined : message;
}

function zodTypePhrase(expected: string): string {
  switch (expected) {
    case "int":
      return "an integer";
    case "number":
      return "a decimal";
    case "array":
      return "an array";
    case "object":
    case "record":
      return "an object";
    default:
      return `a ${expected}`;
  }
}

/** Returns the type of a JSON value as OpenAI names it. */
export function valuePhrase(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a decimal number";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Returns a path as `messages[1].content[0].type`. */
export function pathText(name: string, path: Path): string {
  let text = name;
  for (const key of path) text += typeof key === "number" ? `[${key}]` : `.${String(key)}`;
  return text;
}

function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const key of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

function stringOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/**
 * The maximum length, in UTF-16 units, of all texts of a parameter together that are searched for during generation: stop strings, biases
 * by text. The search automaton of each choice has a node for each character.
 */
export const maxTextsLength = 65_536;

/** Returns what is wrong with texts that are too long in total, or `undefined`. */
export function lengthProblem(texts: readonly string[], maxLength: number = maxTextsLength): string | undefined {
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  return length <= maxLength
    ? undefined
    : `the strings have ${length} characters in total, and ${maxLength} is the limit`;
}

/** Throws `FailureError` (400) for texts that are longer than `maxLength` in total. `path`: the parameter. */
export function checkTotalLength(path: string, texts: readonly string[], maxLength?: number): void {
  const problem = lengthProblem(texts, maxLength);
  if (problem !== undefined) throw invalidValue(path, `${problem}.`, "string_above_max_length");
}
