import { isObject } from "../../../wire/core/json.ts";
import type { JsonObject } from "../../../wire/core/json.ts";
import { parametersOf } from "../../../wire/core/custom-tool.ts";
import type { JsonSchema, Tool } from "../../../wire/core/message.ts";
import { findReference } from "../schema-reference.ts";
import { literalToJson } from "./read-literal.ts";

/** The JSON types that a parameter may have, as far as they follow from its schema. */
export interface DeclaredTypes {
  /** Any of "string", "integer", "number", "boolean", "null", "array", "object". Empty if the declaration does not restrict the type. */
  readonly types: ReadonlySet<string>;
  readonly schema: JsonSchema;
  /** All values that the declaration allows, if it lists them (`enum`, `const`). */
  readonly listed?: readonly unknown[] | undefined;
}

/** The tools of a request and their declared parameters, which determine the type of a value that is written as plain text. */
export class ToolTypes {
  readonly #tools = new Map<string, JsonSchema | undefined>();
  readonly #custom = new Set<string>();

  constructor(tools: readonly Tool[]) {
    for (const tool of tools) {
      this.#tools.set(tool.name, parametersOf(tool));
      if (tool.kind === "custom") this.#custom.add(tool.name);
    }
  }

  has(tool: string): boolean {
    return this.#tools.has(tool);
  }

  isCustom(tool: string): boolean {
    return this.#custom.has(tool);
  }

  /** The declared types of a parameter, or undefined if it is not declared. */
  parameter(tool: string, name: string): DeclaredTypes | undefined {
    const root = this.#tools.get(tool);
    const schema = propertyOf(root, name, root);
    if (schema === undefined) return undefined;
    return { types: typesOf(schema, root), schema, listed: listedValues(schema, root) };
  }

  /** The schema of all parameters of a tool. */
  root(tool: string): JsonSchema | undefined {
    return this.#tools.get(tool);
  }

  /** Whether a tool of this name is declared with parameters. */
  declares(tool: string): boolean {
    return this.#tools.get(tool) !== undefined;
  }
}

/** Maximum depth of references and alternatives: a schema may refer to itself. */
const maxDepth = 20;

/** The schema of a property in the schema of an object. */
export function propertyOf(schema: unknown, name: string, root: unknown): JsonSchema | undefined {
  return partOf(schema, root, ({ properties }) =>
    isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined,
  );
}

/** The schema of the item at this index in the schema of an array. */
export function itemOf(schema: unknown, index: number, root: unknown): JsonSchema | undefined {
  return partOf(schema, root, ({ prefixItems, items, additionalItems }) => {
    // In draft 7, `items` holds the first items and `additionalItems` the others.
    const first: readonly unknown[] = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
    if (index < first.length) return first[index];
    return Array.isArray(items) ? additionalItems : items;
  });
}

/** Finds a subschema in a schema or in one of its alternatives. */
function partOf(
  schema: unknown,
  root: unknown,
  find: (schema: JsonObject) => unknown,
  depth = 0,
): JsonSchema | undefined {
  const at = resolve(schema, root);
  if (!isObject(at) || depth > maxDepth) return undefined;
  const found = find(at);
  if (isSchema(found)) return found;
  for (const part of alternatives(at)) {
    const inner = partOf(part, root, find, depth + 1);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

/** The values of a schema that allows only listed ones (`enum`, `const`, or alternatives of them), otherwise undefined. */
function listedValues(schema: unknown, root: unknown, depth = 0): readonly unknown[] | undefined {
  const at = resolve(schema, root);
  if (!isObject(at) || depth > maxDepth) return undefined;
  if (Array.isArray(at["enum"])) return at["enum"];
  if ("const" in at) return [at["const"]];
  for (const key of ["anyOf", "oneOf"]) {
    const parts: unknown = at[key];
    if (!Array.isArray(parts)) continue;
    const lists = parts.map((part) => listedValues(part, root, depth + 1));
    const listed = lists.filter((list) => list !== undefined);
    return listed.length === lists.length ? listed.flat() : undefined;
  }
  return undefined;
}

/** The types that a schema allows, as far as it restricts them. */
export function typesOf(schema: unknown, root: unknown): ReadonlySet<string> {
  const types = new Set<string>();
  gatherTypes(schema, root, types, 0);
  return types;
}

const typeNames = new Set(["string", "integer", "number", "boolean", "null", "array", "object"]);

function gatherTypes(schema: unknown, root: unknown, types: Set<string>, depth: number): void {
  const at = resolve(schema, root);
  if (!isObject(at) || depth > maxDepth) return;
  const { type } = at;
  const names: readonly unknown[] = Array.isArray(type) ? type : [type];
  for (const name of names) if (typeof name === "string" && typeNames.has(name)) types.add(name);
  if (at["nullable"] === true) types.add("null");
  for (const part of alternatives(at)) {
    // Separately: an `enum` without `type` next to a typed alternative adds the types of its members.
    const own = new Set<string>();
    gatherTypes(part, root, own, depth + 1);
    for (const name of own) types.add(name);
  }
  if (types.size > 0 || type !== undefined) return;
  const members = Array.isArray(at["enum"]) ? at["enum"] : "const" in at ? [at["const"]] : [];
  for (const member of members) types.add(typeName(member));
}

function alternatives(schema: Readonly<Record<string, unknown>>): unknown[] {
  return ["anyOf", "oneOf", "allOf"].flatMap((key) => {
    const parts: unknown = schema[key];
    return Array.isArray(parts) ? (parts as unknown[]) : [];
  });
}

function resolve(schema: unknown, root: unknown): unknown {
  let at = schema;
  for (let steps = 0; steps < maxDepth && isObject(at) && typeof at["$ref"] === "string"; steps++) {
    at = findReference(root, at["$ref"]);
  }
  return at;
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function fits(value: unknown, types: ReadonlySet<string>): boolean {
  const name = typeName(value);
  return types.has(name) || (name === "integer" && types.has("number"));
}

/**
 * The JSON of a value that is written as plain text, by its declared types. Unless only a string is allowed, the text is parsed as JSON,
 * then (if the parameter is declared) as a Python literal, then as JSON with one level of escaping too many; otherwise it is a string.
 * Where a string is also allowed, another value must have a declared type and must not be replaced by a string that the `enum` lists. A
 * text that is not listed, but is a listed one in quotes or white space (`"red"`), is that one.
 */
export function typedValue(text: string, declared: DeclaredTypes | undefined): string {
  const asText = JSON.stringify(listedText(text, declared?.listed));
  const types = declared?.types ?? new Set<string>();
  if (types.size === 1 && types.has("string")) return asText;
  const trimmed = text.trim();
  const found =
    parsed(trimmed) ?? (declared ? (parsed(literalToJson(trimmed)) ?? parsed(unescaped(trimmed))) : undefined);
  if (found === undefined) return asText;
  const isText = typeof found.value === "string";
  if (declared === undefined || types.size === 0) return isText ? asText : found.json;
  if (
    types.has("string") &&
    (isText || !fits(found.value, types) || isListedAsText(declared.schema, text, found.value))
  )
    return asText;
  return found.json;
}

/** The listed string that a text which is not listed means, otherwise the text. */
function listedText(text: string, listed: readonly unknown[] | undefined): string {
  if (listed === undefined || listed.includes(text)) return text;
  const trimmed = text.trim();
  const quoted = /^(["'])[^]*\1$/.test(trimmed) ? (parsed(trimmed) ?? parsed(literalToJson(trimmed))) : undefined;
  const meant = [trimmed, quoted?.value].find((value) => typeof value === "string" && listed.includes(value));
  return typeof meant === "string" ? meant : text;
}

/** Whether the `enum` of a schema lists the text but not the parsed value: `1` with `[0, "1"]`. */
function isListedAsText(schema: unknown, text: string, value: unknown): boolean {
  const listed = isObject(schema) ? schema["enum"] : undefined;
  return Array.isArray(listed) && listed.includes(text) && !listed.includes(value);
}

interface Parsed {
  readonly json: string;
  readonly value: unknown;
}

/** A failing `JSON.parse` is expensive, so the first character is checked before. */
const beginsJson = /^[[{"\d\-tfn]/;

function parsed(json: string | null): Parsed | undefined {
  if (json === null || !beginsJson.test(json)) return undefined;
  try {
    return { json, value: JSON.parse(json) as unknown };
  } catch {
    return undefined;
  }
}

function unescaped(text: string): string | null {
  if (!text.includes("\\")) return null;
  const value = parsed(`"${text}"`)?.value;
  return typeof value === "string" ? value : null;
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "boolean" || isObject(value);
}
