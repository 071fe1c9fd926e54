import type { Json } from "./chat-server.ts";

/**
 * Why llama.cpp's server of 2026-09 and later refuses the schemas of a request; undefined: it does not. Patterns that its grammars cannot
 * express are taken for any text; those that are no regular expressions are refused, and so is the schema `true` everywhere but in
 * `additionalProperties`. Sources, in ggml-org/llama.cpp: common/json-schema.cpp (common_chat_schema_builder), common/json-schema-to-grammar.cpp
 * (_pattern_to_rule) and src/llama-grammar.cpp (MAX_REPETITION_THRESHOLD).
 */
export function llamaSchemaRefusal(schemas: readonly unknown[]): string | undefined {
  const patterns: string[] = [];
  try {
    for (const schema of schemas) new Builder(schema, patterns).build(schema, "#");
  } catch (error) {
    if (error instanceof SchemaError) return failed(error.message);
    throw error;
  }
  const problems = patterns.map((pattern) => [pattern, patternProblem(pattern)] as const);
  const invalid = problems.filter(([, problem]) => problem !== undefined && problem !== unparsable);
  if (invalid.length > 0)
    return failed(
      `JSON schema conversion failed:\n${invalid.map(([pattern, why]) => `Invalid pattern ${pattern}: ${why}`).join("\n")}`,
    );
  return problems.length > invalid.length && problems.some(([, problem]) => problem === unparsable)
    ? "Failed to initialize samplers: failed to parse grammar"
    : undefined;
}

const failed = (why: string): string =>
  `Unable to generate parser for this template. Automatic parser generation failed: ${why}`;

const unparsable = "failed to parse grammar";
const maxRepetitions = 2000;
const formats = /^(?:date|time|date-time|uuid[1-5]?)$/;
const plainTypes = new Set(["number", "boolean", "null"]);

class SchemaError extends Error {}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reads one schema; its patterns and impossible counts come to `patterns`. */
class Builder {
  readonly #root: unknown;
  readonly #patterns: string[];
  readonly #followed = new Set<string>();

  constructor(root: unknown, patterns: string[]) {
    this.#root = root;
    this.#patterns = patterns;
  }

  build(schema: unknown, path: string): void {
    if (!isObject(schema)) throw fail(path, "schema must be an object");
    if ("$ref" in schema) return this.#reference(schema["$ref"], path);
    for (const key of ["oneOf", "anyOf"]) if (key in schema) return this.#alternatives(schema, key, path);
    const { type = null } = schema;
    if (Array.isArray(type)) {
      if (type.length === 0) throw fail(path, "type must not be empty");
      // A type that comes again reads the same properties.
      for (const each of new Set<unknown>(type))
        this.build({ ...schema, type: each }, `${path}/type/${type.indexOf(each)}`);
      return;
    }
    if ("const" in schema) return;
    if ("enum" in schema) {
      const values = schema["enum"];
      if (!Array.isArray(values) || values.length === 0) throw fail(path, "enum must be a non-empty array");
      return;
    }
    if (type !== null && typeof type !== "string") throw fail(path, "type must be a string or an array of strings");
    this.#typed(schema, type ?? "", path);
  }

  #typed(schema: Json, type: string, path: string): void {
    const has = (...names: readonly string[]): boolean => names.some((name) => name in schema);
    const hasProperties = has("properties") || (has("additionalProperties") && schema["additionalProperties"] !== true);
    if (hasProperties && (type === "" || type === "object")) return this.#object(schema, path);
    if (has("allOf") && ["", "object", "string"].includes(type)) return this.#alternatives(schema, "allOf", path);
    if (type === "object") return this.#object(schema, path);
    if (type === "array" || (type === "" && has("items", "prefixItems"))) return this.#array(schema, path);
    if (type === "string" || (type === "" && (has("pattern", "minLength", "maxLength") || hasFormat(schema, path))))
      return this.#string(schema, path);
    if (type === "integer")
      for (const [first, second] of [
        ["minimum", "exclusiveMinimum"],
        ["maximum", "exclusiveMaximum"],
      ] as const) {
        const name = has(first) ? first : second;
        if (has(name) && typeof schema[name] !== "number") throw fail(path, `${name} must be a number`);
      }
    else if (type !== "" && !plainTypes.has(type)) throw fail(path, `unrecognized type ${type}`);
  }

  #object(schema: Json, path: string): void {
    const { properties = {}, additionalProperties: others = true } = schema;
    if (!isObject(properties)) throw fail(path, "properties must be an object");
    for (const [name, inner] of Object.entries(properties)) this.build(inner, `${path}/properties/${name}`);
    if (isObject(others)) this.build(others, `${path}/additionalProperties`);
    else if (typeof others !== "boolean") throw fail(path, "additionalProperties must be a boolean or a schema");
  }

  #array(schema: Json, path: string): void {
    const key = "items" in schema ? "items" : "prefixItems";
    const items = schema[key];
    if (Array.isArray(items)) {
      for (const [at, item] of items.entries()) this.build(item, `${path}/${key}/${at}`);
      return;
    }
    if (key in schema) this.build(items, `${path}/${key}`);
    // The first item stands before the separator and the others.
    this.#counts(schema, "Items", path, 1);
  }

  #string(schema: Json, path: string): void {
    const { pattern } = schema;
    if (pattern !== undefined && typeof pattern !== "string") throw fail(path, "pattern must be a string");
    const isFormat = hasFormat(schema, path);
    if (pattern) this.#patterns.push(pattern);
    this.#counts(schema, "Length", path, pattern || isFormat ? Infinity : 0);
  }

  /** `free`: how many more than the most repetitions a grammar takes. */
  #counts(schema: Json, what: string, path: string, free: number): void {
    for (const name of [`min${what}`, `max${what}`])
      if (name in schema && !(Number.isInteger(schema[name]) && Number(schema[name]) >= 0))
        throw fail(path, `${name} must be a non-negative integer`);
    const least = Number(schema[`min${what}`] ?? 0);
    if (least > maxRepetitions + free) this.#patterns.push(`^a{${least}}$`);
  }

  #alternatives(schema: Json, key: string, path: string): void {
    const list = schema[key];
    if (!Array.isArray(list)) throw fail(`${path}/${key}`, "must be an array of schemas");
    if (list.length === 0) throw fail(`${path}/${key}`, "must not be empty");
    for (const [at, inner] of list.entries()) this.build(inner, `${path}/${key}/${at}`);
  }

  #reference(reference: unknown, path: string): void {
    if (typeof reference !== "string") throw fail(path, "$ref must be a string");
    if (!reference.startsWith("#/"))
      throw fail(path, `unsupported $ref ${reference}, only references into the same document are supported`);
    if (this.#followed.has(reference)) return;
    this.#followed.add(reference);
    let target: unknown = this.#root;
    for (const name of reference.slice(2).split("/")) {
      const isThere = typeof target === "object" && target !== null && Object.hasOwn(target, name);
      const isOfList = Array.isArray(target);
      if (!isThere || (isOfList && !/^\d+$/.test(name)))
        throw fail(path, `cannot resolve $ref ${reference}, ${name} ${isOfList ? "is out of range" : "not found"}`);
      target = (target as Json)[name];
    }
    this.build(target, reference);
  }
}

function fail(path: string, why: string): SchemaError {
  return new SchemaError(`JSON schema error at ${path}: ${why}`);
}

function hasFormat({ format }: Json, path: string): boolean {
  if (format !== undefined && typeof format !== "string") throw fail(path, "format must be a string");
  return format !== undefined && formats.test(format);
}

/** What is wrong with a pattern; undefined: nothing, or it is taken for any text. */
function patternProblem(pattern: string): string | undefined {
  if (pattern.length < 2 || !pattern.startsWith("^") || !pattern.endsWith("$")) return undefined;
  const text = pattern.slice(1, -1);
  // What stands before the next sign in each open group: nothing, "|", or something to repeat, which may be empty.
  const before: ("nothing" | "|" | "item" | "maybe")[] = ["nothing"];
  // Whether an alternative of each open group is empty.
  const isEmpty = [false];
  let isUnparsable = false;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at] ?? "";
    if (sign === "(") {
      if (text[at + 1] === "?") {
        if (text[at + 2] !== ":") return undefined;
        at += 2;
      }
      before.push("nothing");
      isEmpty.push(false);
      if (before.length > 101) return undefined;
    } else if (sign === ")") {
      if (before.length === 1) return "unbalanced parentheses";
      const last = before.pop();
      const hasEmpty = isEmpty.pop() === true || last === "nothing" || last === "|";
      before[before.length - 1] = hasEmpty ? "maybe" : "item";
    } else if (sign === "^" || sign === "$") return undefined;
    else if (sign === "[") {
      for (at++; at < text.length && text[at] !== "]"; at++)
        if (text[at] === "\\") {
          const length = escapeLength(text, at);
          if (length === 0) return undefined;
          at += length - 1;
        }
      if (at >= text.length) return "unterminated character class";
      before[before.length - 1] = "item";
    } else if (sign === "|") {
      if (before.at(-1) === "nothing" || before.at(-1) === "|") isEmpty[isEmpty.length - 1] = true;
      before[before.length - 1] = "|";
    } else if ("*+?{".includes(sign)) {
      let least = sign === "+" ? 1 : 0;
      if (sign === "{") {
        const end = text.indexOf("}", at);
        if (end === -1) return undefined;
        const numbers = text.slice(at + 1, end).split(",");
        if (
          numbers.length > 2 ||
          numbers.some((number) => !/^\d+$/.test(number) && !(numbers.length === 2 && number === ""))
        )
          return undefined;
        least = Number(numbers[0]);
        at = end;
      }
      const last = before.at(-1);
      if (last === "nothing") return "nothing to repeat";
      // What may be empty and repeats without end is refused as left recursion.
      const isEndless = last === "maybe" && (sign === "*" || sign === "+");
      if (last === "|" || isEndless || least > maxRepetitions) isUnparsable = true;
      before[before.length - 1] = least === 0 || (last === "maybe" && sign !== "{") ? "maybe" : "item";
    } else if (sign === "\\") {
      if (at === text.length - 1) return "trailing backslash";
      const length = "^$.[]()|{}*+?".includes(text[at + 1] ?? "") ? 2 : escapeLength(text, at);
      if (length === 0) return undefined;
      at += length - 1;
      before[before.length - 1] = "item";
    } else if (sign === "]" || sign === "}") return undefined;
    else before[before.length - 1] = "item";
  }
  if (before.length > 1) return "unbalanced parentheses";
  return isUnparsable ? unparsable : undefined;
}

/** How long an escape is that grammars have, too; 0: they have it not. */
function escapeLength(text: string, at: number): number {
  const digits = { x: 2, u: 4, U: 8 }[text[at + 1] ?? ""] ?? 0;
  if (digits === 0) return 'trn\\"[]-'.includes(text[at + 1] ?? " ") ? 2 : 0;
  return /^[0-9a-fA-F]+$/.test(text.slice(at + 2, at + 2 + digits)) && at + 2 + digits <= text.length ? 2 + digits : 0;
}
