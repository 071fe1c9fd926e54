import { listOf, objectOf } from "./chat-server.ts";
import type { Json } from "./chat-server.ts";

const unimplemented =
  "uniqueItems contains minContains maxContains unevaluatedItems propertyNames dependentRequired dependentSchemas unevaluatedProperties not if then else $dynamicRef".split(
    " ",
  );
const formats = "date-time time date duration email hostname ipv4 ipv6 uuid uri".split(" ");
const types = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

/**
 * Why llguidance refuses a schema; undefined: it does not. Source: llguidance 1.7.6 (`LLMatcher.validate_grammar`), which was asked on
 * 2026-11-30 about each keyword and format. What a pattern may have is that of Rust's regular expressions.
 */
export function llguidanceRefusal(schema: unknown): string | undefined {
  return refusal(schema, schema);
}

function refusal(value: unknown, root: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const schema = objectOf(value);
  const keys = unimplemented.filter((name) => name in schema);
  if (keys.length > 0) return `Unimplemented keys: ${JSON.stringify(keys)}`;
  const { type, format, pattern, properties, required, $ref: reference } = schema;
  const unknown = [type].flat().find((name) => name !== undefined && !types.has(String(name)));
  if (unknown !== undefined) return `Invalid type: ${String(unknown)}`;
  if (format !== undefined && !formats.includes(String(format))) return `Unknown format: ${String(format)}`;
  if (/\(\?<?[=!]|\\[1-9]/.test(String(pattern))) return `regex parse error: ${String(pattern)}`;
  if (/\\b/i.test(String(pattern))) return `lookarounds not supported yet; WordUnicode in regex /${String(pattern)}/`;
  const isOptional = Object.keys(objectOf(properties)).some((name) => ![required].flat().includes(name));
  if ((isOptional || properties === undefined) && ("minProperties" in schema || "maxProperties" in schema))
    return 'min/maxProperties only supported when all keys listed in "properties" are required';
  if (typeof reference === "string" && reference.startsWith("#/") && at(root, reference) === undefined)
    return `Pointer '${reference.slice(1)}' does not exist`;
  for (const [name, inner] of Object.entries(schema)) {
    const schemas = ["properties", "patternProperties", "$defs", "definitions"].includes(name)
      ? Object.values(objectOf(inner))
      : Array.isArray(inner)
        ? listOf(inner)
        : [inner];
    const why = schemas.map((one) => refusal(one, root)).find((one) => one !== undefined);
    if (why !== undefined) return why;
  }
  return undefined;
}

function at(root: unknown, pointer: string): unknown {
  const names = pointer.slice(2).split("/");
  return names.reduce<unknown>((value, name) => (value as Json | undefined)?.[name], root);
}
