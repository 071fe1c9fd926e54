import { larkKeyword } from "../../../wire/core/custom-tool.ts";
import { isObject } from "../../../wire/core/json.ts";
import type { JsonSchema } from "../../../wire/core/message.ts";
import { findReference } from "../schema-reference.ts";
import { PatternSet } from "./regex-matcher.ts";
import { SchemaError, type SchemaGap } from "./grammar-errors.ts";
import { anything, type JsonType, jsonTypes, meet, type Part, type Parts, type Shape } from "./schema-shape.ts";

/** Maximum number of shapes when several `anyOf` are combined by `allOf`. */
const maxShapes = 128;

/** Maximum work: schemas that grow exponentially (references to references, twice each) are refused before they block the server. */
const maxWork = 20_000_000;

/** Assertions of JSON Schema (2020-12 and draft-07) that a grammar cannot enforce. */
const beyond = ["not", "if", "contains", "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef"];

/**
 * Reads the schemas of one document as alternatives of shapes: references are resolved, `allOf` is merged, `anyOf` and `oneOf` are
 * expanded.
 */
export class SchemaReader {
  /** Distinguishes the schemas of different documents within one grammar. */
  readonly scope: string;
  readonly #path: string;
  readonly #references: References;
  readonly #patterns: PatternSet;
  readonly #gaps = new Map<string, SchemaGap>();
  #work = 0;
  #depth = 0;
  /** A `oneOf` was read as `anyOf`: a value that matches two of its branches is accepted. */
  sawOneOf = false;

  /**
   * `path`: the path of the document, for errors.
   *
   * @throws {SchemaError} if the document is nested too deeply, or has too many properties in one object.
   */
  constructor(document: JsonSchema, path: string, scope = "") {
    checkLimits(document, path);
    this.#path = path;
    this.#references = new References(document);
    this.#patterns = new PatternSet((work) => this.spend(work, this.#path));
    this.scope = scope;
  }

  get gaps(): readonly SchemaGap[] {
    return [...this.#gaps.values()];
  }

  report(path: string, keyword: string): void {
    this.#gaps.set(`${path} ${keyword}`, { path, keyword });
  }

  /** Counts work in characters of schema, or steps of about that cost. @throws {SchemaError} if it exceeds the limit. */
  spend(work: number, path: string): void {
    this.#work += work;
    if (this.#work > maxWork)
      throw new SchemaError(path, `the schema is too large: it takes more than ${maxWork} steps`);
  }

  /** Calls `read` one level deeper. @throws {SchemaError} if values are nested too deeply, references included. */
  within<T>(path: string, read: () => T): T {
    if (this.#depth === maxDepth) throw new SchemaError(path, `nested deeper than ${maxDepth} levels`);
    this.#depth++;
    const result = read();
    this.#depth--;
    return result;
  }

  /**
   * Whether the pattern at `path` matches anywhere in a text. null if that is undecidable (look-around, back references, a malformed
   * pattern), which is reported under `keyword`.
   */
  matches(
    { pattern, path }: { readonly pattern: string; readonly path: string },
    text: string,
    keyword: string,
  ): boolean | null {
    const matches = this.#patterns.matches(pattern, text);
    if (matches === null) this.report(path, keyword);
    return matches;
  }

  /** The shapes of a value that satisfies all `parts`; empty if there is no such value. */
  shapes(parts: Parts, following: ReadonlySet<string> = new Set()): readonly Shape[] {
    return parts.reduce<readonly Shape[]>(
      (shapes, part) => this.#meetAll(shapes, this.#shapesOf(part, following), part.path, "allOf"),
      [anything],
    );
  }

  #shapesOf({ schema, path }: Part, following: ReadonlySet<string>): readonly Shape[] {
    this.spend(500, path);
    if (typeof schema === "boolean") return schema ? [anything] : [];
    let shapes: readonly Shape[] = [this.#ownShape(schema, path)];
    if (typeof schema["$ref"] === "string") {
      const reference = schema["$ref"];
      // A schema that refers only to itself is unsatisfiable.
      if (following.has(reference)) return [];
      if (following.size === maxDepth) throw new SchemaError(path, `more than ${maxDepth} references to references`);
      const target = { schema: this.#references.resolve(reference, path), path };
      shapes = this.#meetAll(shapes, this.shapes([target], new Set([...following, reference])), path, "$ref");
    }
    for (const [i, part] of list(schema, "allOf", path).entries()) {
      const at = { schema: asSchema(part, `${path}.allOf[${i}]`), path: `${path}.allOf[${i}]` };
      shapes = this.#meetAll(shapes, this.#shapesOf(at, following), path, "allOf");
    }
    for (const keyword of ["anyOf", "oneOf"]) {
      if (schema[keyword] === undefined) continue;
      if (keyword === "oneOf") this.sawOneOf = true;
      const options = list(schema, keyword, path).flatMap((option, i) => {
        const at = `${path}.${keyword}[${i}]`;
        return this.#shapesOf({ schema: asSchema(option, at), path: at }, following);
      });
      shapes = this.#meetAll(shapes, options, path, keyword);
    }
    return shapes;
  }

  #meetAll(a: readonly Shape[], b: readonly Shape[], path: string, keyword: string): readonly Shape[] {
    if (a.length === 1 && a[0] === anything) return b;
    if (a.length > 1 && b.length > 1 && a.length * b.length > maxShapes) {
      this.report(path, keyword);
      return a;
    }
    return a.flatMap((x) =>
      b.map((y) => {
        this.spend((x.values?.length ?? 0) + (y.values?.length ?? 0), path);
        return meet(x, y);
      }),
    );
  }

  /** The assertions of the schema itself, without its references and combinators. */
  #ownShape(schema: { readonly [keyword: string]: unknown }, path: string): Shape {
    this.#reportBeyond(schema, path);
    const { types, integer } = typesOf(schema, path);
    const values = valuesOf(schema, path);
    const format = text(schema, "format", path);
    const rest = schema["prefixItems"] === undefined && Array.isArray(schema["items"]) ? "additionalItems" : "items";
    const first = rest === "additionalItems" ? "items" : "prefixItems";
    const pattern = text(schema, "pattern", path);
    const lark = text(schema, larkKeyword, path);
    const int32 = format === "int32";
    return {
      types,
      ...(values === undefined ? {} : { values }),
      number: {
        integer: integer || int32 || format === "int64",
        multiples: multiplesOf(schema, path),
        ...(int32 ? meetInt32(bounds(schema, path)) : bounds(schema, path)),
      },
      string: {
        min: count(schema, "minLength", path) ?? 0,
        max: count(schema, "maxLength", path) ?? null,
        patterns: pattern === undefined ? [] : [{ pattern, path }],
        formats: format === undefined || ignoredFormats.has(format) ? [] : [{ name: format, path }],
        grammars: lark === undefined ? [] : [{ definition: lark, path }],
      },
      array: {
        first: list(schema, first, path).map((item, i) => {
          const at = `${path}.${first}[${i}]`;
          return [{ schema: asSchema(item, at), path: at }];
        }),
        ...(schema[rest] === undefined ? {} : { rest: [child(schema, rest, path)] }),
        closed: closes(schema["unevaluatedItems"]),
        min: count(schema, "minItems", path) ?? 0,
        max: count(schema, "maxItems", path) ?? null,
      },
      object: {
        properties: new Map(members(schema, "properties", path).map(({ name, part }) => [name, [part]])),
        required: new Set(strings(schema, "required", path)),
        ...(schema["additionalProperties"] === undefined
          ? {}
          : { additional: [child(schema, "additionalProperties", path)] }),
        closed: declaresProperties(schema) || closes(schema["unevaluatedProperties"]),
        patterns: members(schema, "patternProperties", path).map(({ name, part }) => ({
          pattern: name,
          parts: [part],
          path,
        })),
        names: schema["propertyNames"] === undefined ? [] : [child(schema, "propertyNames", path)],
        min: count(schema, "minProperties", path) ?? 0,
        max: count(schema, "maxProperties", path) ?? null,
        path,
      },
    };
  }

  #reportBeyond(schema: { readonly [keyword: string]: unknown }, path: string): void {
    for (const keyword of beyond) if (schema[keyword] !== undefined) this.report(path, keyword);
    if (schema["uniqueItems"] === true && !(Number(schema["maxItems"]) <= 1)) this.report(path, "uniqueItems");
    if (Object.keys(record(schema["dependentRequired"])).length > 0) this.report(path, "dependentRequired");
  }
}

/** Formats that do not restrict the text of a string, or that were converted to other constraints. */
const ignoredFormats = new Set(["int32", "int64", "float", "double", "password", "binary"]);

/** Also true for an empty `properties`, with which a tool declares that it has no arguments. */
function declaresProperties(schema: { readonly [keyword: string]: unknown }): boolean {
  return schema["properties"] !== undefined || schema["patternProperties"] !== undefined;
}

/** Whether `unevaluatedProperties` or `unevaluatedItems` is anything but true. Then members that no keyword describes are not written. */
function closes(unevaluated: unknown): boolean {
  return unevaluated !== undefined && unevaluated !== true;
}

function typesOf(
  schema: { readonly [keyword: string]: unknown },
  path: string,
): { types: ReadonlySet<JsonType>; integer: boolean } {
  const { type } = schema;
  if (type === undefined) return { types: new Set(jsonTypes), integer: false };
  const names: unknown[] = Array.isArray(type) ? [...type] : [type];
  if (schema["nullable"] === true) names.push("null");
  const types = new Set<JsonType>();
  for (const name of names) {
    const known = name === "integer" ? "number" : jsonTypes.find((known) => known === name);
    if (known === undefined) throw new SchemaError(`${path}.type`, `unknown type ${JSON.stringify(name)}`);
    types.add(known);
  }
  return { types, integer: names.includes("integer") && !names.includes("number") };
}

function valuesOf(schema: { readonly [keyword: string]: unknown }, path: string): readonly unknown[] | undefined {
  const { enum: values } = schema;
  if (values !== undefined && !Array.isArray(values)) throw new SchemaError(`${path}.enum`, "enum must be an array");
  if (!Object.hasOwn(schema, "const")) return values;
  const own = schema["const"];
  return values === undefined || values.some((value) => JSON.stringify(value) === JSON.stringify(own)) ? [own] : [];
}

function bounds(schema: { readonly [keyword: string]: unknown }, path: string): Pick<Shape["number"], "low" | "high"> {
  const limit = (inclusive: string, exclusive: string, sign: number): Shape["number"]["low"] => {
    const value = finite(schema, inclusive, path);
    // In draft 4, and therefore in OpenAPI 3.0, this is a boolean.
    if (schema[exclusive] === true) return value === undefined ? undefined : { value, exclusive: true };
    const other = schema[exclusive] === false ? undefined : finite(schema, exclusive, path);
    if (other === undefined) return value === undefined ? undefined : { value, exclusive: false };
    return value === undefined || (other - value) * sign >= 0
      ? { value: other, exclusive: true }
      : { value, exclusive: false };
  };
  const low = limit("minimum", "exclusiveMinimum", 1);
  const high = limit("maximum", "exclusiveMaximum", -1);
  return { ...(low === undefined ? {} : { low }), ...(high === undefined ? {} : { high }) };
}

function meetInt32({ low, high }: Pick<Shape["number"], "low" | "high">): Pick<Shape["number"], "low" | "high"> {
  const [least, most] = [-(2 ** 31), 2 ** 31 - 1];
  return {
    low: low === undefined || low.value < least ? { value: least, exclusive: false } : low,
    high: high === undefined || high.value > most ? { value: most, exclusive: false } : high,
  };
}

function multiplesOf(schema: { readonly [keyword: string]: unknown }, path: string): readonly number[] {
  const value = finite(schema, "multipleOf", path);
  if (value === undefined) return [];
  if (value <= 0) throw new SchemaError(`${path}.multipleOf`, "multipleOf must be greater than 0");
  return [value];
}

function finite(schema: { readonly [keyword: string]: unknown }, keyword: string, path: string): number | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new SchemaError(`${path}.${keyword}`, `${keyword} must be a number`);
  }
  return value;
}

function count(schema: { readonly [keyword: string]: unknown }, keyword: string, path: string): number | undefined {
  const value = finite(schema, keyword, path);
  if (value !== undefined && (value < 0 || !Number.isInteger(value))) {
    throw new SchemaError(`${path}.${keyword}`, `${keyword} must be a non-negative integer`);
  }
  return value;
}

function text(schema: { readonly [keyword: string]: unknown }, keyword: string, path: string): string | undefined {
  const value = schema[keyword];
  if (value !== undefined && typeof value !== "string") {
    throw new SchemaError(`${path}.${keyword}`, `${keyword} must be a string`);
  }
  return value;
}

function strings(schema: { readonly [keyword: string]: unknown }, keyword: string, path: string): readonly string[] {
  return list(schema, keyword, path).map((value, i) => {
    if (typeof value !== "string") throw new SchemaError(`${path}.${keyword}[${i}]`, `${keyword} must hold strings`);
    return value;
  });
}

function list(schema: { readonly [keyword: string]: unknown }, keyword: string, path: string): readonly unknown[] {
  const value = schema[keyword] ?? [];
  if (!Array.isArray(value)) throw new SchemaError(`${path}.${keyword}`, `${keyword} must be an array`);
  return value;
}

function members(
  schema: { readonly [keyword: string]: unknown },
  keyword: string,
  path: string,
): readonly { name: string; part: Part }[] {
  const value = schema[keyword] ?? {};
  if (!isObject(value)) throw new SchemaError(`${path}.${keyword}`, `${keyword} must be an object`);
  return Object.entries(value).map(([name, member]) => {
    const at = `${path}.${keyword}.${name}`;
    return { name, part: { schema: asSchema(member, at), path: at } };
  });
}

function child(schema: { readonly [keyword: string]: unknown }, keyword: string, path: string): Part {
  const at = `${path}.${keyword}`;
  return { schema: asSchema(schema[keyword], at), path: at };
}

function asSchema(value: unknown, path: string): JsonSchema {
  if (typeof value === "boolean" || isObject(value)) return value;
  throw new SchemaError(path, "a schema must be an object or a boolean");
}

function record(value: unknown): { readonly [key: string]: unknown } {
  return isObject(value) ? value : {};
}

/** Resolves references within one document. Other documents are never fetched. */
class References {
  readonly #document: JsonSchema;
  readonly #found = new Map<string, JsonSchema>();

  constructor(document: JsonSchema) {
    this.#document = document;
  }

  /** Returns the schema that a `$ref` refers to. @throws {SchemaError} at `path` if it refers to nothing. */
  resolve(reference: string, path: string): JsonSchema {
    let schema = this.#found.get(reference);
    if (schema !== undefined) return schema;
    const found = findReference(this.#document, reference);
    if (typeof found !== "boolean" && !isObject(found))
      throw new SchemaError(`${path}.$ref`, `reference ${JSON.stringify(reference)} cannot be resolved`);
    schema = found;
    this.#found.set(reference, schema);
    return schema;
  }
}

/**
 * Far above what schemas in practice need: OpenAI's strict mode allows 10 levels of nesting and 5,000 properties in total (guide
 * "Structured Outputs").
 */
const maxDepth = 200;
const maxProperties = 10_000;

/** @throws {SchemaError} if the schema's JSON is nested too deeply, or an object has too many members. Not recursive. */
function checkLimits(schema: unknown, path: string): void {
  let level: readonly Place[] = [{ value: schema, key: "", parent: null }];
  for (let depth = 0; level.length > 0; depth++) {
    const below: Place[] = [];
    for (const place of level) {
      const { value } = place;
      if (typeof value !== "object" || value === null) continue;
      if (depth > maxDepth) throw new SchemaError(pathOf(place, path), `nested deeper than ${maxDepth} levels`);
      const isList = Array.isArray(value);
      const entries = Object.entries(value);
      if (!isList && entries.length > maxProperties)
        throw new SchemaError(pathOf(place, path), `more than ${maxProperties} members`);
      for (const [key, member] of entries) {
        if (typeof member === "object" && member !== null)
          below.push({ value: member, key: isList ? `[${key}]` : `.${key}`, parent: place });
      }
    }
    level = below;
  }
}

interface Place {
  readonly value: unknown;
  readonly key: string;
  readonly parent: Place | null;
}

function pathOf(place: Place, path: string): string {
  const keys: string[] = [];
  for (let at: Place | null = place; at !== null; at = at.parent) keys.push(at.key);
  return path + keys.toReversed().join("");
}
