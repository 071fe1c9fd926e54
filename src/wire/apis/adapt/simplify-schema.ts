import { isObject, type JsonObject } from "../../core/json.ts";
import type { JsonSchema } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { isOn, type SchemaCompiler, type ServerProfile } from "./server-profile.ts";

/** What a compiler takes. */
interface CompilerRules {
  /** The only keywords that it takes; default: all. */
  readonly keywords?: ReadonlySet<string>;
  /** Values of `format` that it takes; default: any text. */
  readonly formats?: ReadonlySet<string>;
  /** Whether a pattern may be sent; default: any. */
  readonly takesPattern?: (pattern: string, repetitions: number) => boolean;
  /** The most repetitions in all, of items and characters inside each other. */
  readonly maxRepetitions?: number;
  /** It follows `$ref` to a JSON pointer in the same schema; default: each `$ref` is replaced by its target. */
  readonly followsPointers?: true;
  /** It refuses schemas that are `true`, or that have no type. */
  readonly needsTypes?: true;
  /** Each object lists all its properties as required, and allows no others. */
  readonly requiresAll?: true;
  /** Further keywords to drop from one schema. */
  readonly drop?: (schema: JsonObject) => readonly string[];
}

const annotations = ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"];
const plainKeywords = [
  ...annotations,
  "type",
  "enum",
  "const",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "anyOf",
];

/** MAX_REPETITION_THRESHOLD of llama.cpp, src/llama-grammar.cpp. */
const maxLlamaRepetitions = 2000;

/**
 * Characters, escaped signs, classes, groups and repetitions, between anchors. Each begins with another character, so there is no
 * backtracking.
 */
const llamaPattern =
  /^\^(?![*+?{|)])(?:[^\\[\](){}|*+?^$]|\\[\^$.[\]()|{}*+?\\]|\[\^?(?:[^\\\]]|\\[\\[\]])+\]|\((?:\?:)?(?![*+?{|)])|\)|\|(?![*+?{|)])|(?:[*+?]|\{\d+(?:,\d*)?\})(?![*+?{]))*\$$/s;

/**
 * Whether llama.cpp writes a pattern as a grammar that it can parse itself, and as the same pattern: without look-around, named classes,
 * back references and lazy quantifiers, with the anchors around all alternatives.
 */
function isLlamaPattern(pattern: string, repetitions: number): boolean {
  if (!llamaPattern.test(pattern)) return false;
  let most = repetitions;
  let depth = 0;
  for (const [sign, min, max] of pattern.matchAll(/\\.|\[\^?(?:[^\\\]]|\\.)+\]?|\{(\d+)(?:,(\d*))?\}|[()|]/gs)) {
    if (sign === "(") depth++;
    else if (sign === ")") depth--;
    else if (sign === "|" && depth === 0) return false;
    else if (min !== undefined) most *= Math.max(1, Number(min), Number(max ?? 0));
    if (depth < 0) return false;
  }
  return depth === 0 && most < maxLlamaRepetitions;
}

/** Whether a keyword has a value that JSON Schema allows, with an alternative besides `false`. Most servers pass over others. */
function isWellFormed(name: string, value: unknown): boolean {
  if (name === "enum") return Array.isArray(value) && value.length > 0;
  if (["anyOf", "oneOf", "allOf"].includes(name)) return Array.isArray(value) && value.some((one) => one !== false);
  if (mapKeywords.has(name)) return isObject(value);
  if (name === "additionalProperties") return isObject(value) || typeof value === "boolean";
  if (name === "$ref") return typeof value === "string";
  if (/^(?:min|max)(?:Length|Items)$/.test(name)) return Number.isInteger(value) && Number(value) >= 0;
  return !/^(?:exclusiveM|m)(?:in|ax)imum$/.test(name) || typeof value === "number";
}

const compilers: Readonly<Record<SchemaCompiler, CompilerRules>> = {
  /*
   * common/json-schema-to-grammar.cpp of ggml-org/llama.cpp: "Pattern must start with '^' and end with '$'", "Unsupported ref", "Unrecognized
   * schema", and patterns that its grammar's parser refuses: "failed to parse grammar" (issues 21943, 25746, 25895). Since 2026-09
   * common/json-schema.cpp: "schema must be an object", "enum must be a non-empty array".
   */
  "llama.cpp": {
    followsPointers: true,
    needsTypes: true,
    maxRepetitions: maxLlamaRepetitions,
    takesPattern: isLlamaPattern,
    drop: (schema) => Object.entries(schema).flatMap(([name, value]) => (isWellFormed(name, value) ? [] : [name])),
  },
  /*
   * has_xgrammar_unsupported_json_features and STRING_SUPPORTED_FORMATS in vllm/v1/structured_output/backend_xgrammar.py of
   * vllm-project/vllm; cpp/regex_converter.cc of mlc-ai/xgrammar: "Lookahead is not supported yet.", "Backreference …", "Word boundary …".
   */
  xgrammar: {
    followsPointers: true,
    formats: new Set(
      "email date time date-time duration ipv4 ipv6 hostname uuid uri uri-reference uri-template json-pointer relative-json-pointer".split(
        " ",
      ),
    ),
    takesPattern: (pattern) => !/\(\?(?!:)|\\[1-9bBpPk]/.test(pattern),
    drop: (schema) => {
      const { properties, patternProperties, additionalProperties, unevaluatedProperties } = schema;
      const isOpen = !isObject(additionalProperties) && (unevaluatedProperties ?? true) === true;
      const hasText = "pattern" in schema || "format" in schema;
      return [
        "multipleOf",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        ...(hasText ? ["minLength", "maxLength"] : []),
        ...(properties !== undefined || patternProperties !== undefined || !isOpen ? ["propertyNames"] : []),
        ...(isObject(patternProperties) && (properties !== undefined || Object.keys(patternProperties).length > 1)
          ? ["patternProperties"]
          : []),
      ];
    },
  },
  /*
   * llguidance 1.7.6, with which vLLM compiles what xgrammar does not take: "Unimplemented keys: [\"uniqueItems\"]", "Unknown format: regex",
   * "min/maxProperties only supported when all keys listed in \"properties\" are required", and the regular expressions of Rust.
   */
  llguidance: {
    followsPointers: true,
    formats: new Set("date-time time date duration email hostname ipv4 ipv6 uuid uri".split(" ")),
    takesPattern: (pattern) => !/\(\?<?[=!]|\\[1-9bBk]/.test(pattern),
    drop: ({ properties, required }) => {
      const names = isObject(properties) ? Object.keys(properties) : [];
      const takesCounts = names.length > 0 && names.every((name) => Array.isArray(required) && required.includes(name));
      return [
        ..."uniqueItems contains minContains maxContains unevaluatedItems propertyNames dependentRequired".split(" "),
        ..."dependentSchemas unevaluatedProperties not if then else $dynamicRef".split(" "),
        ...(takesCounts ? [] : ["minProperties", "maxProperties"]),
      ];
    },
  },
  // https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas".
  "openai-strict": {
    followsPointers: true,
    requiresAll: true,
    keywords: new Set([
      ...plainKeywords,
      "$ref",
      "$defs",
      "definitions",
      "pattern",
      "format",
      "multipleOf",
      "minItems",
      "maxItems",
      "minimum",
      "maximum",
      "exclusiveMinimum",
      "exclusiveMaximum",
    ]),
    formats: new Set("date-time time date duration email hostname ipv4 ipv6 uuid".split(" ")),
    takesPattern: (pattern) => !/\(\?(?!:)/.test(pattern),
  },
  // https://ai.google.dev/api/generate-content#GenerationConfig, `responseJsonSchema`: the keywords that Gemini reads.
  gemini: {
    followsPointers: true,
    keywords: new Set(
      "$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf properties additionalProperties required propertyOrdering".split(
        " ",
      ),
    ),
  },
  plain: { keywords: new Set(plainKeywords), needsTypes: true },
};

/** Whether a compiler reads a keyword of schemas. */
export function takesKeyword(compiler: SchemaCompiler, keyword: string): boolean {
  return compilers[compiler].keywords?.has(keyword) ?? true;
}

/** A schema for a server. */
export interface SimplifiedSchema {
  readonly schema: unknown;
  /** The server's schema allows values that the original one does not: answers must be checked. */
  readonly isLooser: boolean;
}

/**
 * Simplifies a JSON Schema for a server that compiles schemas to grammars: replaces references, and drops what the server refuses
 * (`profile.schemaCompiler`, `profile.refusedKeywords`). Dropped constraints are appended to the description, where the model reads them.
 * A reference that contains itself is followed twice, then only its type is kept. Returns `schema` itself if nothing changes.
 */
export function simplifySchema(schema: unknown, isStrict: boolean, profile: ServerProfile): SimplifiedSchema {
  if (!isObject(schema)) return simplified(schema, isStrict, profile);
  const key = JSON.stringify([profile.schemaCompiler, profile.refusedKeywords, isStrict]);
  const last = lately.get(schema);
  if (last?.key === key) return last.result;
  const result = simplified(schema, isStrict, profile);
  lately.set(schema, { key, result });
  return result;
}

/** The last result for each schema, which is needed for the request, for the judgment of its answer, and for each attempt. */
const lately = new WeakMap<object, { readonly key: string; readonly result: SimplifiedSchema }>();

function simplified(schema: unknown, isStrict: boolean, profile: ServerProfile): SimplifiedSchema {
  const { schemaCompiler, refusedKeywords = [] } = profile;
  // OpenAI takes any schema that is not strict.
  if (!needsSimpleSchemas(profile) || (schemaCompiler === "openai-strict" && !isStrict))
    return { schema, isLooser: false };
  const rules = schemaCompiler === undefined ? {} : compilers[schemaCompiler];
  const simplifier = new Simplifier(schema, rules, new Set(refusedKeywords));
  const simple = simplifier.simplify(schema, { path: [], repetitions: 1 });
  const isSame = JSON.stringify(simple) === JSON.stringify(schema);
  return { schema: isSame ? schema : simple, isLooser: simplifier.isLooser };
}

/** Whether a server with this profile may refuse schemas. */
export function needsSimpleSchemas({ schemaCompiler, refusedKeywords = [] }: ServerProfile): boolean {
  return schemaCompiler !== undefined || refusedKeywords.length > 0;
}

/** The client's schemas that the server does not enforce in full. */
export interface LooseSchemas {
  /** By the name of the tool. */
  readonly tools: ReadonlyMap<string, JsonSchema>;
  /** The schema of the answer's text. */
  readonly output?: JsonSchema;
}

/** The client's schemas for which `simplifySchema` writes looser ones; null if all are enforced. */
export function looseSchemas({ tools = [], output }: GenerationRequest, profile: ServerProfile): LooseSchemas | null {
  if (!needsSimpleSchemas(profile) || !isOn(profile, "simple-schema")) return null;
  const isLoose = (schema: unknown, isStrict: boolean): boolean => simplifySchema(schema, isStrict, profile).isLooser;
  const loose = new Map<string, JsonSchema>();
  for (const { name, kind, parameters, strict } of tools)
    if (kind !== "custom" && parameters !== undefined && isLoose(parameters, strict === true))
      loose.set(name, parameters);
  const hasOutput = output?.type === "json-schema" && isLoose(output.schema, output.strict);
  if (loose.size === 0 && !hasOutput) return null;
  return { tools: loose, ...(hasOutput && { output: output.schema }) };
}

interface Place {
  /** The references that lead here. */
  readonly path: readonly string[];
  /** How often what contains this schema may repeat. */
  readonly repetitions: number;
}

/** Keywords whose value is a schema, a list of schemas, or schemas by name. All others are data. */
const schemaKeywords = new Set(
  "items additionalItems additionalProperties not if then else contains propertyNames unevaluatedItems unevaluatedProperties contentSchema".split(
    " ",
  ),
);
const listKeywords = new Set(["allOf", "anyOf", "oneOf", "prefixItems", "items"]);
const mapKeywords = new Set(["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"]);

/** Members that constrain no value. */
const free: ReadonlySet<string> = new Set([
  ...annotations,
  "$ref",
  "$defs",
  "definitions",
  "$schema",
  "$id",
  "$anchor",
  "$comment",
]);

const anyType = ["string", "number", "boolean", "object", "array", "null"];
const types: ReadonlySet<unknown> = new Set([...anyType, "integer"]);
/** Keywords from which llama.cpp makes a rule without a type. */
const ruleKeywords = ["$ref", "anyOf", "oneOf", "allOf", "enum", "const", "properties", "items", "prefixItems"];

/** How often a reference may contain itself, and how many schemas replace references in all. */
const maxRecursion = 2;
const maxSchemas = 5000;
/** The length of dropped constraints in a description, in characters. */
const maxConstraintText = 500;

class Simplifier {
  readonly #root: unknown;
  readonly #rules: CompilerRules;
  readonly #refused: ReadonlySet<string>;
  #schemas = 0;
  isLooser = false;

  constructor(root: unknown, rules: CompilerRules, refused: ReadonlySet<string>) {
    this.#root = root;
    this.#rules = rules;
    this.#refused = refused;
  }

  simplify(schema: unknown, place: Place): unknown {
    if (!isObject(schema)) return schema !== false && this.#rules.needsTypes ? { type: anyType } : schema;
    this.#schemas++;
    if (typeof schema["$ref"] === "string" && !this.#isFollowed(schema["$ref"])) return this.#inlined(schema, place);
    const dropped = this.#refusedIn(schema, place);
    const repetitions = place.repetitions * repetitionsOf(schema);
    const members: [string, unknown][] = [];
    for (const [name, value] of Object.entries(schema))
      if (!dropped.has(name)) members.push([name, this.#member(name, value, { ...place, repetitions })]);
    let simplified: JsonObject = Object.fromEntries(members);
    const constraints = Object.entries(schema).filter(([name]) => dropped.has(name) && !free.has(name));
    if (constraints.length > 0) {
      this.isLooser = true;
      simplified = withConstraints(simplified, Object.fromEntries(constraints));
    }
    if (this.#rules.needsTypes) simplified = this.#typed(simplified);
    if (!this.#rules.requiresAll || !isObject(simplified["properties"])) return simplified;
    this.isLooser = true;
    return withAllRequired(simplified, simplified["properties"]);
  }

  #member(name: string, value: unknown, place: Place): unknown {
    if (mapKeywords.has(name) && isObject(value))
      return Object.fromEntries(
        Object.entries(value)
          .filter(([, inner]) => this.#isWritable(inner))
          .map(([key, inner]) => [key, this.simplify(inner, place)]),
      );
    if (listKeywords.has(name) && Array.isArray(value))
      return value.filter((inner) => this.#isWritable(inner)).map((inner) => this.simplify(inner, place));
    // `additionalProperties: true` is taken everywhere.
    const isSchema = schemaKeywords.has(name) && (isObject(value) || name === "items");
    return isSchema ? this.simplify(value, place) : value;
  }

  /** The schema `false`, which llama.cpp refuses, is left out. */
  #isWritable(schema: unknown): boolean {
    const isRefused = schema === false && this.#rules.needsTypes === true;
    if (isRefused) this.isLooser = true;
    return !isRefused;
  }

  /** The keywords of a schema that the server refuses. */
  #refusedIn(schema: JsonObject, { repetitions }: Place): Set<string> {
    const { keywords, formats, takesPattern, drop, maxRepetitions = Infinity, followsPointers } = this.#rules;
    const { format, pattern } = schema;
    const names = Object.keys(schema);
    const dropped = new Set(names.filter((name) => this.#refused.has(name) || (keywords && !keywords.has(name))));
    for (const name of drop?.(schema) ?? []) if (name in schema) dropped.add(name);
    if (followsPointers !== true) for (const name of ["$defs", "definitions"]) if (name in schema) dropped.add(name);
    if (format !== undefined && (typeof format !== "string" || (formats && !formats.has(format))))
      dropped.add("format");
    if (pattern !== undefined && (typeof pattern !== "string" || takesPattern?.(pattern, repetitions) === false))
      dropped.add("pattern");
    if (schema["items"] === false && this.#rules.needsTypes) dropped.add("items");
    if (repetitions * repetitionsOf(schema) >= maxRepetitions)
      for (const name of ["minLength", "maxLength", "minItems", "maxItems"]) if (name in schema) dropped.add(name);
    return dropped;
  }

  /** Whether the server follows this reference by itself, and its target is still there. */
  #isFollowed(reference: string): boolean {
    const [, list = ""] = /^#\/(\$defs|definitions)\/[^/~%]+$/.exec(reference) ?? [];
    const isKept = list !== "" && !this.#refused.has(list) && !this.#refused.has("$ref");
    return this.#rules.followsPointers === true && isKept && isObject(targetOf(this.#root, reference));
  }

  /** The target of a reference with the other members of the schema that refers to it. */
  #inlined(schema: JsonObject, place: Place): unknown {
    const { $ref, ...others } = schema;
    const reference = String($ref);
    const target = targetOf(this.#root, reference);
    const isTooDeep = place.path.filter((name) => name === reference).length >= maxRecursion;
    if (target === undefined || target === false || isTooDeep || this.#schemas > maxSchemas) {
      this.isLooser = true;
      const type = isObject(target) ? { type: target["type"] } : {};
      return this.simplify({ ...(type.type !== undefined && type), ...others }, place);
    }
    const merged = isObject(target) ? { ...target, ...others } : target;
    return this.simplify(merged, { ...place, path: [...place.path, reference] });
  }

  /** A schema with a type that the compiler knows. */
  #typed(schema: JsonObject): JsonObject {
    const { type } = schema;
    if (type === undefined) return ruleKeywords.some((name) => name in schema) ? schema : { ...schema, type: anyType };
    const list: readonly unknown[] = Array.isArray(type) ? type : [type];
    const known = list.filter((name) => types.has(name));
    if (known.length === list.length && known.length > 0) return schema;
    this.isLooser = true;
    return { ...schema, type: known.length > 0 ? known : anyType };
  }
}

/** The most repetitions that the keywords of a schema count. */
function repetitionsOf(schema: JsonObject): number {
  const counts = ["minLength", "maxLength", "minItems", "maxItems"].map((name) => Number(schema[name] ?? 0));
  return Math.max(1, ...counts.filter(Number.isFinite));
}

/** The schema that a reference in the same document means: `#`, a JSON pointer, or an `$anchor`; undefined if the reference leads nowhere. */
function targetOf(root: unknown, reference: string): unknown {
  if (!reference.startsWith("#")) return undefined;
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return anchored(root, reference.slice(1), 0);
  let target = root;
  for (const part of reference.slice(2).split("/")) {
    const key = unescaped(part);
    if (typeof target !== "object" || target === null || !Object.hasOwn(target, key)) return undefined;
    target = (target as JsonObject)[key];
  }
  return target;
}

function unescaped(part: string): string {
  const plain = part.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}

function anchored(value: unknown, name: string, depth: number): unknown {
  if (typeof value !== "object" || value === null || depth > 100) return undefined;
  if (isObject(value) && value["$anchor"] === name) return value;
  for (const inner of Object.values(value)) {
    const found = anchored(inner, name, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Appends dropped constraints to the description. */
function withConstraints(schema: JsonObject, constraints: JsonObject): JsonObject {
  const text = JSON.stringify(constraints);
  if (text.length > maxConstraintText) return schema;
  const { description } = schema;
  const words = [
    ...(typeof description === "string" && description !== "" ? [description] : []),
    `JSON Schema: ${text}`,
  ];
  return { ...schema, description: words.join(" ") };
}

/** An object whose optional properties are required and may be null. */
function withAllRequired(schema: JsonObject, properties: JsonObject): JsonObject {
  const { required } = schema;
  const given = new Set<unknown>(Array.isArray(required) ? required : []);
  const all = Object.entries(properties).map(([name, inner]): [string, unknown] => [
    name,
    given.has(name) ? inner : { anyOf: [inner, { type: "null" }] },
  ]);
  return {
    ...schema,
    properties: Object.fromEntries(all),
    required: Object.keys(properties),
    additionalProperties: false,
  };
}
