import type { z } from "zod";
import type { FailureError } from "../../core/failure.ts";
import { invalidRequest } from "../../core/failure.ts";
import {
  arrayTooLong,
  emptyArray,
  emptyString,
  invalidType,
  listed,
  missingParameter,
  numberAbove,
  numberBelow,
  patternMismatch,
  stringTooLong,
  unsupportedEnumValue,
} from "./refusals.ts";
import { integerMark } from "./shapes.ts";

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
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a decimal";
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
