import * as z from "zod";
import { isObject } from "../core/json.ts";
import type { JsonObject } from "../core/json.ts";
import { jsonText } from "./json-text.ts";
import type { JsonValue } from "./json-text.ts";

/** A member of an object on the wire, as the object's schema describes it. */
export interface SchemaMember {
  readonly name: string;
  readonly schema: z.ZodType;
  /** The vendor's answers always have it: today's if `since` is present, else those of every date. */
  readonly always: boolean;
  /** The date since which answers have it, as `2025-08` or `2026-09-26`; absent where they always had it. */
  readonly since?: string;
}

const listed = new WeakMap<z.ZodObject, readonly SchemaMember[]>();

/** Returns the members of an object's schema, in the order of the wire. */
export function membersOf(schema: z.ZodObject): readonly SchemaMember[] {
  let members = listed.get(schema);
  if (members === undefined) {
    members = Object.entries(schema.shape as Readonly<Record<string, z.ZodType>>).map(([name, schema]) => {
      const since = schema.meta()?.["since"];
      return {
        name,
        schema,
        always: !(schema instanceof z.ZodOptional),
        ...(typeof since === "string" && { since }),
      };
    });
    listed.set(schema, members);
  }
  return members;
}

/** True for a schema that lists only some of the members that an object may have. */
export function isOpen(schema: z.ZodObject): boolean {
  return schema.def.catchall instanceof z.ZodUnknown;
}

/** Returns the schema inside `.optional()` and `.nullable()`. */
export function unwrapped(schema: z.ZodType): z.ZodType {
  let inner = schema;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodNullable) inner = inner.unwrap() as z.ZodType;
  return inner;
}

/**
 * Returns the object schema that describes `value`: the schema itself, or the alternative of a union that `value` belongs to by its type.
 * `undefined` for another kind of schema, and for a type that the union does not describe.
 */
export function objectSchema(schema: z.ZodType, value: JsonObject): z.ZodObject | undefined {
  const inner = unwrapped(schema);
  if (inner instanceof z.ZodObject) return inner;
  if (inner instanceof z.ZodDiscriminatedUnion) return variantsOf(inner).get(value[inner.def.discriminator]);
  if (!(inner instanceof z.ZodUnion)) return undefined;
  for (const alternative of inner.options as readonly z.ZodType[]) {
    const found = objectSchema(alternative, value);
    if (found !== undefined && !(found === alternative && isOpen(found))) return found;
  }
  return undefined;
}

/** Returns the schema of the items of a list, or of the first list in a union. */
function itemSchema(schema: z.ZodType): z.ZodType | undefined {
  if (schema instanceof z.ZodArray) return schema.element as z.ZodType;
  return schema instanceof z.ZodUnion && !(schema instanceof z.ZodDiscriminatedUnion)
    ? (schema.options as readonly z.ZodType[]).map(itemSchema).find((item) => item !== undefined)
    : undefined;
}

const variants = new WeakMap<z.ZodDiscriminatedUnion, ReadonlyMap<unknown, z.ZodObject>>();

/** Returns the objects of a discriminated union by the value of their discriminator, in the union's order. */
export function variantsOf(union: z.ZodDiscriminatedUnion): ReadonlyMap<unknown, z.ZodObject> {
  let found = variants.get(union);
  if (found === undefined) {
    const objects = union.options.filter((option) => option instanceof z.ZodObject);
    found = new Map(
      objects.flatMap((option) =>
        [...(option.shape[union.def.discriminator] as z.ZodLiteral).values].map((value) => [value as unknown, option]),
      ),
    );
    variants.set(union, found);
  }
  return found;
}

/**
 * Returns `value` with the members that `schema` lists in the schema's order, followed by all others in their own order. Objects and
 * arrays inside are ordered by their schemas; what no schema describes is returned as it is. `printFloat`: replaces the numbers whose schema
 * has `.meta({ float: true })`.
 */
export function inWireOrder(schema: z.ZodType, value: unknown, printFloat?: (value: number) => unknown): unknown {
  // Most values are no objects, and their schemas need not be looked at.
  if ((typeof value !== "object" || value === null) && (typeof value !== "number" || !printFloat)) return value;
  const inner = unwrapped(schema);
  if (Array.isArray(value)) {
    const item = itemSchema(inner);
    return item ? value.map((one: unknown) => inWireOrder(item, one, printFloat)) : value;
  }
  if (typeof value === "number" && printFloat && inner.meta()?.["float"] === true) return printFloat(value);
  if (isObject(value) && inner instanceof z.ZodRecord)
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, inWireOrder(inner.valueType as z.ZodType, item, printFloat)]),
    );
  const described = isObject(value) ? objectSchema(inner, value) : undefined;
  if (!isObject(value) || described === undefined) return value;
  if (!printFloat && isInWireOrder(described, value)) return value;
  const listed = membersOf(described).filter(({ name }) => Object.hasOwn(value, name));
  const names = new Set(listed.map(({ name }) => name));
  return Object.fromEntries([
    ...listed.map(({ name, schema }) => [name, inWireOrder(schema, value[name], printFloat)] as const),
    ...Object.entries(value).filter(([name]) => !names.has(name)),
  ]);
}

/** Whether the members of `value` are in the order of `schema`, none of them is an object, and those that it does not list are the last. */
function isInWireOrder(schema: z.ZodObject, value: JsonObject): boolean {
  const members = membersOf(schema);
  let last = 0;
  for (const name of Object.keys(value)) {
    if (typeof value[name] === "object" && value[name] !== null) return false;
    const found = members.findIndex((member) => member.name === name);
    const place = found === -1 ? members.length : found;
    if (place < last) return false;
    last = place;
  }
  return true;
}

/**
 * Returns the members of `value` in the order of `schema`. Members that the schema does not list are left out; inner objects stay as they
 * are.
 */
export function orderedMembers<T>(
  schema: z.ZodObject,
  value: { readonly [name: string]: T | undefined },
): { readonly [name: string]: T } {
  const ordered: { [name: string]: T } = {};
  for (const { name } of membersOf(schema)) {
    const member = value[name];
    if (member !== undefined) ordered[name] = member;
  }
  return ordered;
}

/** An object inside another one. */
export interface Nested {
  /** The object's type where it is one of several, else the name of its member. */
  readonly name: string;
  readonly object: JsonObject;
  readonly schema: z.ZodObject;
}

/** Returns the objects directly inside `value` that `schema` describes, in the order of the wire; those in arrays, too. */
export function nested(schema: z.ZodObject, value: JsonObject): readonly Nested[] {
  return membersOf(schema).flatMap(({ name, schema: member }) => {
    const inner = unwrapped(member);
    const held = value[name];
    const item = Array.isArray(held) ? itemSchema(inner) : undefined;
    const [kind, items] = item ? [item, held] : [inner, [held]];
    return (Array.isArray(items) ? (items as unknown[]) : []).filter(isObject).flatMap((object) => {
      const described = objectSchema(kind, object);
      if (described === undefined) return [];
      return [{ name: described === kind ? name : String(object["type"]), object, schema: described }];
    });
  });
}

/** Returns the time since which answers have a dated member, in Unix seconds; 0 without a date. */
export function memberSince(schema: z.ZodObject, name: string): number {
  const since = membersOf(schema).find((member) => member.name === name)?.since;
  return since === undefined ? 0 : Date.parse(since) / 1000;
}

/**
 * Returns the date of an answer's form, as `2026-04`: that of the newest dated member in `value` and in the objects inside it. "" without
 * one. A member with `.meta({ proof: "null" })` proves its date only where it is `null`: with a value, it is an older feature that few
 * requests use.
 */
export function formDate(schema: z.ZodObject, value: JsonObject): string {
  let newest = "";
  for (const { name, schema: member, since = "" } of membersOf(schema)) {
    if (since <= newest || !Object.hasOwn(value, name)) continue;
    if (value[name] === null || member.meta()?.["proof"] !== "null") newest = since;
  }
  for (const { object, schema: described } of nested(schema, value)) {
    const inner = formDate(described, object);
    if (inner > newest) newest = inner;
  }
  return newest;
}

/** The members that an object began with until a date, where its order has changed (`.meta({ firstUntil })`). */
export interface EarlierOrder {
  readonly date: string;
  readonly names: readonly string[];
}

/** How often the answers of a profile have a member. */
export type Presence = "always" | "sometimes" | "never";

/**
 * Returns how often the answers of `profile` have a member: what the `.meta()` of its schema says under the profile's name. Without that,
 * `always` for a required member and `sometimes` for an optional one.
 */
export function presenceOf({ schema, always }: SchemaMember, profile: "lean" | "exact"): Presence {
  return (schema.meta()?.[profile] as Presence | undefined) ?? (always ? "always" : "sometimes");
}

/** Returns the names of an object's members, without those that other projects added (`.meta({ extension })`). */
export function memberNames(schema: z.ZodObject): readonly string[] {
  return membersOf(schema).flatMap(({ name, schema }) => (schema.meta()?.["extension"] === undefined ? [name] : []));
}

/**
 * Writes `value` as compact JSON: members in the order of `schema`, followed by those that it does not list. The prepared templates of the
 * stream writers are compared with it in tests.
 */
export function serialize(schema: z.ZodType, value: unknown): string {
  return jsonText(inWireOrder(schema, value) as JsonValue);
}
