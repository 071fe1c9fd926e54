import * as z from "zod";
import { FailureError, invalidRequest } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import { StepCounter, type Steps } from "../../core/steps.ts";
import { membersOf, unwrapped } from "../members.ts";
import type { Profile } from "../profile.ts";
import { wouldAnswer } from "../request/vendor-rules.ts";
import { checkedInSteps, listOf } from "../request/shapes.ts";
import { isSchemaName, maxDepth } from "./json-schema.ts";

/*
 * JSON as Google's parser reads it: the JSON of protocol buffers, with both spellings of names, and one object in place of a list.
 * Sources: https://protobuf.dev/programming-guides/json; Google's own examples, whose `system_instruction` has one part without a list
 * (google-gemini/cookbook, quickstarts/rest); errors quoted in zed-industries/zed#44875 and crmne/ruby_llm#521.
 */

/** A name that the schema does not have, and the path of its object; "" for the body. */
interface UnknownName {
  readonly name: string;
  readonly place: string;
}

/** Further unknown names are not reported. */
const maxReported = 20;

interface Reading {
  readonly pace: StepCounter;
  readonly unknown: UnknownName[];
  /** The names of Google's schemas are read, too. */
  readonly readsSchemas: boolean;
}

const memberNames = new WeakMap<
  z.ZodObject,
  ReadonlyMap<string, { readonly name: string; readonly schema: z.ZodType }>
>();

/** The members of an object by both of their names. */
function namesOf(schema: z.ZodObject): ReadonlyMap<string, { readonly name: string; readonly schema: z.ZodType }> {
  let names = memberNames.get(schema);
  if (!names) {
    const both = membersOf(schema).flatMap((member) => [
      [snakeCase(member.name), member] as const,
      [member.name, member] as const,
    ]);
    memberNames.set(schema, (names = new Map(both)));
  }
  return names;
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Reads a body by its schema, in steps: returns it with the schema's names, without members that the schema does not have, which profile
 * `exact` refuses. Throws `FailureError` in the words of Google's parser.
 */
export function* readProtoJson<Schema extends z.ZodObject>(
  schema: Schema,
  body: unknown,
  { profile, forwards, warnings }: { profile: Profile; forwards: boolean; warnings: string[] },
): Steps<z.infer<Schema>> {
  if (!isObject(body))
    throw invalidRequest('Invalid JSON payload received. Unknown name "": Root element must be a message.');
  const reading: Reading = { pace: new StepCounter(), unknown: [], readsSchemas: profile.isVendor === true };
  const named = yield* withSchemaNames(schema, body, "", reading);
  if (reading.unknown.length > 0 && (!forwards || profile.isVendor)) {
    const refusal = unknownNames(reading.unknown);
    if (profile.judgesAsVendor) throw refusal;
    warnings.push(wouldAnswer(refusal, "Google"));
  }
  const checked = yield* checkedInSteps(schema, named);
  if (!checked.success) throw invalidMember(schema, named, checked.error.issues[0]?.path ?? []);
  return checked.data as z.infer<Schema>;
}

function* withSchemaNames(schema: z.ZodType, value: unknown, place: string, reading: Reading): Steps<unknown> {
  const inner = unwrapped(schema);
  const listed = listOf(inner);
  if (listed) {
    const values = isObject(value) ? [value] : value;
    if (!Array.isArray(values) || values.length > listed.most) return values;
    const items: unknown[] = [];
    for (const [at, one] of (values as readonly unknown[]).entries())
      items.push(isObject(one) ? yield* withSchemaNames(listed.item, one, `${place}[${at}]`, reading) : one);
    return items;
  }
  if (!(inner instanceof z.ZodObject) || !isObject(value)) return value;
  if (reading.pace.endsStep()) yield;
  const names = namesOf(inner);
  const read: Record<string, unknown> = {};
  for (const given of Object.keys(value)) {
    const member = names.get(given);
    const held = value[given];
    if (member === undefined) noteUnknown(given, place, reading);
    else if (typeof held === "object" && held !== null) {
      const inside = place === "" ? snakeCase(given) : `${place}.${snakeCase(given)}`;
      read[member.name] = yield* withSchemaNames(member.schema, held, inside, reading);
      if (reading.readsSchemas && member.schema.meta()?.["isGoogleSchema"] === true) checkSchema(held, inside, reading);
    } else read[member.name] = held;
  }
  return read;
}

function noteUnknown(name: string, place: string, { unknown }: Reading): void {
  if (unknown.length < maxReported) unknown.push({ name, place });
}

/** Notes the members that Google's schemas do not have. Source: https://ai.google.dev/api/caching#Schema. */
function checkSchema(schema: unknown, place: string, reading: Reading, depth = 0): void {
  if (!isObject(schema) || depth > maxDepth) return;
  const { properties, items } = schema;
  for (const name of Object.keys(schema)) if (!isSchemaName(name)) noteUnknown(name, place, reading);
  for (const [at, one] of Object.values(isObject(properties) ? properties : {}).entries())
    checkSchema(one, `${place}.properties[${at}].value`, reading, depth + 1);
  checkSchema(items, `${place}.items`, reading, depth + 1);
  const anyOf = schema["anyOf"] ?? schema["any_of"];
  for (const [at, one] of (Array.isArray(anyOf) ? anyOf : []).entries())
    checkSchema(one, `${place}.any_of[${at}]`, reading, depth + 1);
}

function unknownNames(unknown: readonly UnknownName[]): FailureError {
  const words = unknown.map(({ name, place }) => ({
    field: place,
    description: `Invalid JSON payload received. Unknown name ${JSON.stringify(name.slice(0, 200))}${place === "" ? "" : ` at '${place}'`}: Cannot find field.`,
  }));
  return invalidPayload(words);
}

/** 400 with a line for each violation, as Google's parser words it. */
function invalidPayload(
  violations: readonly { readonly field: string; readonly description: string }[],
  param: string | null = null,
): FailureError {
  return new FailureError({
    kind: "invalid-request",
    status: 400,
    message: violations.map(({ description }) => description).join("\n"),
    param: param ?? violations[0]?.field ?? null,
    details: {
      fieldViolations: violations.map(({ field, description }) =>
        field === "" ? { description } : { field, description },
      ),
    },
  });
}

/** The failure for a value of another type. `path`: within `body`, which has the schema's names. */
function invalidMember(schema: z.ZodType, body: unknown, path: readonly PropertyKey[]): FailureError {
  let [value, type]: [unknown, z.ZodType | undefined] = [body, schema];
  let [field, param] = ["", ""];
  for (const key of path) {
    value = typeof value === "object" && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined;
    const inner: z.ZodType | undefined = type && unwrapped(type);
    if (typeof key === "number") {
      type = inner && listOf(inner)?.item;
      field += `[${key}]`;
      param += `[${key}]`;
    } else {
      type = inner instanceof z.ZodObject ? namesOf(inner).get(String(key))?.schema : undefined;
      field += `${field === "" ? "" : "."}${snakeCase(String(key))}`;
      param += `${param === "" ? "" : "."}${String(key)}`;
    }
  }
  const shown = (JSON.stringify(value) ?? "nothing").slice(0, 200);
  return invalidPayload([{ field, description: `Invalid value at '${field}' (${protoType(type)}), ${shown}` }], param);
}

function protoType(schema: z.ZodType | undefined): string {
  const named = schema?.meta()?.["proto"];
  if (typeof named === "string") return named;
  const inner = schema && unwrapped(schema);
  if (inner instanceof z.ZodString) return "TYPE_STRING";
  if (inner instanceof z.ZodBoolean) return "TYPE_BOOL";
  return "TYPE_MESSAGE";
}

/** 400 for bytes that are not base 64. `param`: the path of the member, with the names of JSON. */
export function invalidBytes(param: string, data: string): FailureError {
  const field = snakeCase(param);
  const shown = JSON.stringify(data.slice(0, 40));
  return invalidPayload(
    [{ field, description: `Invalid value at '${field}' (TYPE_BYTES), Base64 decoding failed for ${shown}` }],
    param,
  );
}

/** Base 64 in the standard alphabet. Both alphabets are read, with and without padding; undefined: it is neither. */
export function standardBase64(data: string): string | undefined {
  const plain = /[\s_-]/.test(data) ? data.replace(/\s+/g, "").replaceAll("-", "+").replaceAll("_", "/") : data;
  const [{ length: legal } = ""] = /^[A-Za-z0-9+/]*={0,2}/.exec(plain) ?? [""];
  if (legal < plain.length) return undefined;
  const padding = plain.endsWith("==") ? 2 : plain.endsWith("=") ? 1 : 0;
  const digits = plain.length - padding;
  if (digits % 4 === 1) return undefined;
  return plain.slice(0, digits).padEnd(digits + ((4 - (digits % 4)) % 4), "=");
}
