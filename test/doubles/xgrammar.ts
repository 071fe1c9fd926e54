import type { Json } from "./chat-server.ts";

const formats =
  "email date time date-time duration ipv4 ipv6 hostname uuid uri uri-reference uri-template json-pointer relative-json-pointer";

/**
 * Why vLLM with `--structured-outputs-config.backend xgrammar` refuses a schema; undefined: it does not. Sources:
 * has_xgrammar_unsupported_json_features and validate_xgrammar_grammar in vllm/v1/structured_output/backend_xgrammar.py of
 * vllm-project/vllm; cpp/regex_converter.cc of mlc-ai/xgrammar.
 */
export function xgrammarRefusal(schema: unknown): string | undefined {
  if (hasUnsupported(schema)) return "The provided JSON schema contains features not supported by xgrammar.";
  const why = regexError(schema);
  return why === undefined ? undefined : `Failed to transform json schema into a grammar: ${why}`;
}

function hasUnsupported(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some(hasUnsupported);
  const schema = value as Json;
  const types = new Set([schema["type"]].flat());
  const has = (...names: readonly string[]): boolean => names.some((name) => name in schema);
  const hasMixedLength = (inner: Json): boolean =>
    ("pattern" in inner || "format" in inner) && ("minLength" in inner || "maxLength" in inner);
  const { propertyNames: names, patternProperties: patterns, additionalProperties: others } = schema;
  const isMap = (map: unknown): map is Json => typeof map === "object" && map !== null;
  return (
    ((types.has("integer") || types.has("number")) && has("multipleOf")) ||
    (types.has("array") && has("uniqueItems", "contains", "minContains", "maxContains")) ||
    (types.has("string") && has("format") && !formats.split(" ").includes(String(schema["format"]))) ||
    (types.has("string") && hasMixedLength(schema)) ||
    (types.has("object") && isMap(names) && hasMixedLength(names)) ||
    (types.has("object") && has("propertyNames") && (has("properties", "patternProperties") || isMap(others))) ||
    (types.has("object") && isMap(patterns) && (has("properties") || Object.keys(patterns).length > 1)) ||
    Object.values(schema).some(hasUnsupported)
  );
}

function regexError(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { pattern } = value as Json;
  if (typeof pattern === "string") {
    if (/\(\?<?[=!]/.test(pattern)) return "Lookahead is not supported yet.";
    if (/\\[1-9]/.test(pattern)) return "Backreference is not supported yet.";
    if (/\\[bB]/.test(pattern)) return "Word boundary is not supported yet.";
  }
  for (const inner of Object.values(value)) {
    const why = regexError(inner);
    if (why !== undefined) return why;
  }
  return undefined;
}
