import type { Json } from "./chat-server.ts";

/**
 * Why llama.cpp's server refuses a schema of a tool or a response format; undefined: it does not. Sources, in ggml-org/llama.cpp:
 * common/json-schema-to-grammar.cpp (resolve_refs, visit, _visit_pattern, check_errors) and src/llama-grammar.cpp (parse_char: "unknown
 * escape"; MAX_REPETITION_THRESHOLD, 2000), whose errors reach clients as "failed to parse grammar" (issues 21943, 25746, 25895). Patterns
 * with look-around were refused up to 2026-07 (https://github.com/codefuturist/email-mcp/issues/58), and lose it without an error since.
 */
export function llamaRefusal(schema: unknown): string | undefined {
  const converter = new Converter(schema);
  converter.resolve(schema);
  if (converter.errors.length === 0) converter.visit(schema, 1);
  const { errors, isUnparsable } = converter;
  if (errors.length > 0) return `JSON schema conversion failed:\n${errors.join("\n")}`;
  return isUnparsable ? "Failed to initialize samplers: failed to parse grammar" : undefined;
}

const primitives = new Set(["boolean", "number", "integer", "value", "object", "array", "string", "null"]);
const maxRepetitions = 2000;

class Converter {
  readonly #root: unknown;
  readonly #targets = new Map<string, unknown>();
  readonly #visited = new Set<string>();
  readonly errors: string[] = [];
  isUnparsable = false;

  constructor(root: unknown) {
    this.#root = root;
  }

  /** Follows every `$ref`, also where it is the name of a property. */
  resolve(value: unknown): void {
    if (typeof value !== "object" || value === null) return;
    const { $ref } = value as Json;
    if (Array.isArray(value) || $ref === undefined) for (const inner of Object.values(value)) this.resolve(inner);
    else if (typeof $ref !== "string") {
      // In C++ this throws, which is answered with status 500.
      if (typeof $ref === "object" && $ref !== null) this.resolve($ref);
    } else if (!$ref.startsWith("#/")) this.errors.push(`Unsupported ref: ${$ref}`);
    else if (!this.#targets.has($ref)) {
      let target: unknown = this.#root;
      for (const name of $ref.slice(2).split("/")) {
        if (typeof target !== "object" || target === null || !Object.hasOwn(target, name)) {
          this.errors.push(`Error resolving ref ${$ref}: ${name} not in ${JSON.stringify(target)}`);
          return;
        }
        target = (target as Json)[name];
      }
      this.#targets.set($ref, target);
    }
  }

  visit(value: unknown, repetitions: number): void {
    const schema = (typeof value === "object" && value !== null ? value : {}) as Json;
    const { type, format } = schema;
    const is = (...names: readonly unknown[]): boolean => type === undefined || names.includes(type);
    const all = (list: unknown): void => {
      for (const inner of Object.values(list as object)) this.visit(inner, repetitions);
    };
    if (value !== null && typeof value !== "object") return this.#unrecognized(value);
    if (format !== undefined && typeof format !== "string")
      this.errors.push(`[json.exception.type_error.302] type must be string, but is ${typeof format}`);
    if (typeof schema["$ref"] === "string") {
      if (this.#visited.has(schema["$ref"])) return;
      this.#visited.add(schema["$ref"]);
      return this.visit(this.#targets.get(schema["$ref"]), repetitions);
    }
    if (schema["oneOf"] ?? schema["anyOf"]) return all(schema["oneOf"] ?? schema["anyOf"]);
    if (Array.isArray(type)) {
      for (const each of type) this.visit({ ...schema, type: each as unknown }, repetitions);
      return;
    }
    if ("const" in schema || "enum" in schema) return;
    const others = schema["additionalProperties"];
    if (is("object") && ("properties" in schema || (others !== undefined && others !== true))) {
      all(schema["properties"] ?? {});
      if (typeof others === "object") this.visit(others, repetitions);
      return;
    }
    if (is("object", "string") && schema["allOf"]) return;
    const items = schema["items"] ?? schema["prefixItems"];
    if (is("array") && items !== undefined) {
      if (Array.isArray(items)) return all(items);
      const most = repetitions * this.#counted(schema["minItems"], schema["maxItems"], repetitions);
      return this.visit(items, most);
    }
    if (is("string") && typeof schema["pattern"] === "string") return this.#pattern(schema["pattern"], repetitions);
    if (type === "string") this.#counted(schema["minLength"], schema["maxLength"], repetitions);
    if (Object.keys(schema).length === 0 || type === "object" || type === undefined) return;
    if (!primitives.has(String(type))) this.#unrecognized(schema);
  }

  #unrecognized(schema: unknown): void {
    this.errors.push(`Unrecognized schema: ${JSON.stringify(schema)}`);
  }

  #counted(min: unknown, max: unknown, repetitions: number): number {
    const most = Math.max(1, Number(min ?? 0), Number(max ?? 0));
    if (most > 1 && most * repetitions >= maxRepetitions) this.isUnparsable = true;
    return most;
  }

  #pattern(pattern: string, repetitions: number): void {
    if (!pattern.startsWith("^") || !pattern.endsWith("$")) {
      this.errors.push("Pattern must start with '^' and end with '$'");
      return;
    }
    const rest = pattern.slice(1, -1);
    let isInClass = false;
    let depth = 0;
    let hasItem = false;
    for (let at = 0; at < rest.length; at++) {
      const char = rest[at] ?? "";
      if (char === "\\") {
        const next = rest[++at] ?? "";
        // The grammar's escapes; outside of classes, the converter itself reads those of a regular expression's signs.
        const known = isInClass ? 'xuUtrn\\"[]' : 'xuUtrn\\"[]^$.()|{}*+?';
        if (!known.includes(next)) this.isUnparsable = true;
        hasItem = true;
      } else if (isInClass) isInClass = char !== "]";
      else if (char === "[") isInClass = hasItem = true;
      else if (char === "(") {
        depth++;
        hasItem = false;
        if (rest[at + 1] === "?") {
          if (rest[at + 2] !== ":") this.isUnparsable = true;
          at += 2;
        }
      } else if (char === ")") {
        if (--depth < 0) this.errors.push("Unbalanced parentheses");
        hasItem = true;
      } else if ("*+?{".includes(char)) {
        if (!hasItem) this.isUnparsable = true;
        if (char === "{") {
          const [whole = "", min, max] = /^\{(\d*)(?:,(\d*))?\}/.exec(rest.slice(at)) ?? [];
          if (whole === "") this.errors.push("Unbalanced curly brackets");
          this.#counted(min === "" ? 0 : min, max === "" ? 0 : max, repetitions);
          at += Math.max(0, whole.length - 1);
        }
      } else if (char === "|") hasItem = false;
      else hasItem = true;
    }
    if (isInClass) this.errors.push("Unbalanced square brackets");
  }
}
