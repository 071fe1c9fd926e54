import type * as z from "zod";
import { invalidRequest, type FailureError } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import { jsonString, jsonText, type JsonValue } from "../json-text.ts";
import { parameterFailure } from "../request/refusals.ts";

/*
 * Values as Go reads and writes them: Ollama's server is written in Go. Source: Go's encoding/json and time packages.
 */

/** JSON without characters that HTML could read, as `json.Marshal` writes it. */
export function goJson(value: JsonValue): string {
  return htmlSafe(jsonText(value));
}

/** A string as JSON, like `goJson`. */
export function goString(text: string): string {
  return htmlSafe(jsonString(text));
}

function htmlSafe(json: string): string {
  if (!/[<>&\u2028\u2029]/.test(json)) return json;
  return json.replace(/[<>&\u2028\u2029]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A time in Unix milliseconds (fractions count) as `time.RFC3339Nano` in UTC, to the microsecond. */
export function goTime(unixMs: number): string {
  const micros = Math.floor(unixMs * 1000);
  const seconds = Math.floor(micros / 1e6);
  const fraction = String(micros - seconds * 1e6)
    .padStart(6, "0")
    .replace(/0{1,6}$/, "");
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}${fraction === "" ? "" : `.${fraction}`}Z`;
}

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Parses a duration (`1h30m`, `-1s`, `300ms`) as `time.ParseDuration`; returns milliseconds. Throws `FailureError` in Go's words. */
export function parseGoDuration(text: string): number {
  const invalid = (): FailureError =>
    invalidRequest(`time: invalid duration ${goString(text.slice(0, 100))}`, "keep_alive");
  const [, sign = "", rest = ""] = /^([+-]?)(.*)$/s.exec(text) ?? [];
  if (rest === "0") return 0;
  if (rest === "" || text.length > 100) throw invalid();
  let total = 0;
  for (let at = 0; at < rest.length;) {
    const [part = "", number = "", unit = ""] = /^(\d+\.?\d*|\.\d+)([^\d.]*)/.exec(rest.slice(at)) ?? [];
    if (part === "") throw invalid();
    if (unit === "") throw invalidRequest(`time: missing unit in duration ${goString(text)}`, "keep_alive");
    const size = Object.hasOwn(unitMs, unit) ? unitMs[unit] : undefined;
    if (size === undefined)
      throw invalidRequest(`time: unknown unit ${goString(unit)} in duration ${goString(text)}`, "keep_alive");
    total += Number(number) * size;
    at += part.length;
  }
  return sign === "-" ? -total : total;
}

/** The failure for a body that does not match its schema, by zod's first issue. */
export function bodyFailure(body: unknown, [issue, ...others]: readonly z.core.$ZodIssue[]): FailureError {
  if (!isObject(body)) return invalidRequest('Expected a JSON object such as {"model": "NAME"}.');
  const member = String(issue?.path[0] ?? "");
  const value = body[member];
  if (member === "think") return invalidRequest(thinkWords(value), member);
  if (member === "keep_alive") return invalidRequest(keepAliveWords(value), member);
  const inner = [issue, ...others].flatMap((one) => (one ? [{ ...one, path: one.path.slice(1) }] : []));
  return parameterFailure(member, value, inner);
}

export function thinkWords(value: unknown): string {
  return typeof value === "string"
    ? `invalid think value: ${goString(value.slice(0, 100))} (must be "high", "medium", "low", "max", true, or false)`
    : 'think must be a boolean or string ("high", "medium", "low", "max", true, or false)';
}

export function keepAliveWords(value: unknown): string {
  return `Unsupported type: '${typeof value === "boolean" ? "bool" : Array.isArray(value) ? "[]interface {}" : "map[string]interface {}"}'`;
}
