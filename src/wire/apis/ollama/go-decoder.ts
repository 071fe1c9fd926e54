import * as z from "zod";
import { invalidRequest, type FailureError } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import { membersOf, unwrapped } from "../members.ts";
import { listOf } from "../request/shapes.ts";
import { keepAliveWords, parseGoDuration, thinkWords } from "./go-values.ts";
import { goStructs, ollamaThinkLevels, orderedMap } from "./request-schema.ts";

/*
 * What Ollama refuses of a body before it reads what the body says: values of other types than those of the structs. `.meta({ go })` names the
 * type of a schema. Sources: Go's encoding/json, UnmarshalTypeError and addErrorContext; wk8/go-ordered-map, UnmarshalJSON (its error for
 * anything but an object is that of buger/jsonparser). The words are those of Ollama 0.17.4, compiled with Go 1.26, which was asked on
 * 2026-11-30.
 */

/** Where a value is: the struct that Go's error names, and the path of its members. */
interface Place {
  readonly struct: string;
  readonly path: string;
  /** The value is read by an `UnmarshalJSON`, for which errors name the struct around it. */
  readonly isFixed: boolean;
  readonly depth: number;
}

/** Deeper values are not checked. */
const maxDepth = 300;

/** Throws `FailureError` 400 for a body that Go does not decode into the struct that `schema` describes. */
export function checkGoTypes(schema: z.ZodObject, body: unknown): void {
  check(goType(schema), body, undefined, schema);
}

function check(type: string, value: unknown, place: Place | undefined, schema?: z.ZodType): void {
  if (type === "interface {}" || value === null || value === undefined) return;
  const inner = schema && unwrapped(schema);
  const struct = inner instanceof z.ZodObject ? inner : goStructs[type];
  if (struct) return checkStruct(type, struct, value, place);
  const item = inner && listOf(inner)?.item;
  if (item || type.startsWith("[]")) return checkList(type, item, value, place);
  // A string or a list of strings.
  if (type === "api.PropertyType" && typeof value !== "string") return checkList("[]string", undefined, value, place);
  if (type.startsWith(orderedMap)) {
    if (!isObject(value)) throw invalidRequest("Value looks like object, but can't find closing '}' symbol");
    const inside = place && { ...place, isFixed: true };
    for (const one of Object.values(value)) check(type.slice(orderedMap.length), one, inside);
    return;
  }
  if (plainTypes[type]?.(value) === false) throw mismatch(type, value, place);
}

function checkList(type: string, item: z.ZodType | undefined, value: unknown, place: Place | undefined): void {
  if (!Array.isArray(value)) throw mismatch(type, value, place);
  const itemType = item ? goType(item) : type.slice("[]".length);
  for (const one of value) check(itemType, one, place, item);
}

function checkStruct(type: string, struct: z.ZodObject, value: unknown, place: Place | undefined): void {
  if (!isObject(value)) throw mismatch(type, value, place);
  const isFixed = place !== undefined && (place.isFixed || struct.meta()?.["unmarshals"] === true);
  const depth = (place?.depth ?? 0) + 1;
  if (depth > maxDepth) return;
  const members = new Map(membersOf(struct).map(({ name, schema }) => [name, schema]));
  // Go reports the first mismatch in the order of the body.
  for (const [name, held] of Object.entries(value)) {
    const schema = members.get(name);
    if (!schema) continue;
    const path = place ? `${place.path}.${name}` : name;
    const inside = { struct: isFixed ? place.struct : type.replace(/^[a-z]+\./, ""), path, isFixed, depth };
    check(goType(schema), held, inside, schema);
  }
}

/** Go's type of a schema: what its `.meta({ go })` says, or that of its kind. */
function goType(schema: z.ZodType): string {
  const inner = unwrapped(schema);
  const named = schema.meta()?.["go"] ?? inner.meta()?.["go"];
  if (typeof named === "string") return named;
  const item = listOf(inner)?.item;
  if (item) return `[]${goType(item)}`;
  if (inner instanceof z.ZodString) return "string";
  if (inner instanceof z.ZodBoolean) return "bool";
  if (inner instanceof z.ZodNumber) return inner instanceof z.ZodNumberFormat ? "int" : "float64";
  return "interface {}";
}

/** Whether a value is of a type. Some types have an `UnmarshalJSON` with words of its own, which are thrown. */
const plainTypes: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  bool: (value) => typeof value === "boolean",
  int: (value) => Number.isInteger(value),
  float64: (value) => typeof value === "number",
  "map[string]interface {}": isObject,
  // `[]byte`: base64.
  "api.ImageData"(value) {
    if (typeof value !== "string") return false;
    const [{ length: legal } = ""] = /^[A-Za-z0-9+/=\r\n]*/.exec(value) ?? [];
    const from = legal < value.length ? legal : value.length - (value.length % 4);
    if (from < value.length) throw invalidRequest(`illegal base64 data at input byte ${from}`);
    return true;
  },
  "api.ThinkValue"(value) {
    const isLevel = ollamaThinkLevels.some((level) => level === value);
    if (!isLevel && typeof value !== "boolean") throw invalidRequest(thinkWords(value), "think");
    return true;
  },
  "api.Duration"(value) {
    if (typeof value === "string") parseGoDuration(value);
    else if (typeof value !== "number") throw invalidRequest(keepAliveWords(value), "keep_alive");
    return true;
  },
};

function mismatch(type: string, value: unknown, place: Place | undefined): FailureError {
  const where = place ? `Go struct field ${place.struct}.${place.path}` : "Go value";
  return invalidRequest(`json: cannot unmarshal ${goKind(value)} into ${where} of type ${type}`, place?.path ?? null);
}

function goKind(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "number" && !Number.isInteger(value)) return `number ${value}`;
  return typeof value === "boolean" ? "bool" : typeof value;
}
