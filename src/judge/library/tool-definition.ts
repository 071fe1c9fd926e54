import { isObject } from "../../wire/core/json.ts";
import { invalidRequest } from "../../wire/core/failure.ts";
import type { JsonSchema, Tool } from "../../wire/core/message.ts";

/** A tool described by its parameters, as agent frameworks do, instead of by a JSON Schema. */
export interface ToolDefinition {
  readonly name: string;
  readonly description?: string;
  readonly parameters: Readonly<Record<string, ParameterDefinition>>;
  /** Keywords of the schema in addition to `type`, `properties` and `required`: `additionalProperties`, `$defs`, … */
  readonly keywords?: Readonly<Record<string, unknown>>;
  readonly strict?: boolean;
}

export interface ParameterDefinition {
  /** Absent: the schema does not say one type (`anyOf`, `$ref`, several types); what it says is in `keywords`. */
  readonly type?: ParameterType;
  readonly description?: string;
  /** Default true. */
  readonly required?: boolean;
  /** Any JSON value: 0, false, "" and null are defaults like others. */
  readonly default?: unknown;
  /** Further keywords of the parameter's schema: `enum`, `items`, `minimum`, … */
  readonly keywords?: Readonly<Record<string, unknown>>;
}

export type ParameterType = (typeof types)[number][0];

/** One table for both directions: the definition's word, JSON Schema's. */
const types = [
  ["int", "integer"],
  ["float", "number"],
  ["bool", "boolean"],
  ["str", "string"],
  ["list", "array"],
  ["dict", "object"],
] as const;

const schemaTypes = new Map<string, string>(types);
const parameterTypes = new Map<unknown, ParameterType>(types.map(([own, schema]) => [schema, own]));

/**
 * The tool that a definition describes; its parameters are a JSON Schema. Throws `FailureError` (400) for a type other
 * than int, float, bool, str, list, dict. Defaults are kept, falsy ones too.
 *
 * @example
 * import { fromToolDefinition } from "truewire";
 *
 * const tool = fromToolDefinition({
 *   name: "search",
 *   parameters: { query: { type: "str" }, limit: { type: "int", required: false, default: 0 } },
 * });
 * console.log(JSON.stringify(tool.parameters));
 * // → {"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","default":0}},"required":["query"]}
 */
export function fromToolDefinition(definition: ToolDefinition): Tool {
  const { name, description, parameters, keywords, strict } = definition;
  const entries = Object.entries(parameters);
  const required = entries.filter(([, parameter]) => parameter.required !== false).map(([key]) => key);
  return {
    name,
    ...(description !== undefined && { description }),
    parameters: {
      type: "object",
      properties: Object.fromEntries(entries.map(([key, parameter]) => [key, schemaOf(key, parameter)])),
      ...(required.length > 0 && { required }),
      ...keywords,
    },
    ...(strict !== undefined && { strict }),
  };
}

/**
 * The definition of a tool: the other direction of `fromToolDefinition`, which gives the same tool back. A tool without parameters
 * has none. Throws `FailureError` (400) for what no list of parameters describes: a custom tool, a schema that is no object's.
 *
 * @example
 * import { toToolDefinition } from "truewire";
 *
 * const { parameters } = toToolDefinition({
 *   name: "wait",
 *   parameters: { type: "object", properties: { seconds: { type: "number", default: 0 } } },
 * });
 * console.log(parameters.seconds);
 * // → { type: 'float', required: false, default: 0 }
 */
export function toToolDefinition(tool: Tool): ToolDefinition {
  const { name, description, parameters = { type: "object", properties: {} }, strict, kind } = tool;
  const { type = "object", properties = {}, required = [], ...keywords } = membersOf(parameters) ?? { type: "boolean" };
  const members = membersOf(properties);
  if (kind === "custom" || type !== "object" || !members || !Array.isArray(required)) {
    throw invalidRequest(`The tool '${name}' has no parameters that could be listed.`, "parameters");
  }
  const needed = new Set<unknown>(required);
  return {
    name,
    ...(description !== undefined && { description }),
    parameters: Object.fromEntries(
      Object.entries(members).map(([key, schema]) => [key, parameterOf(schema, needed.has(key))]),
    ),
    ...(Object.keys(keywords).length > 0 && { keywords }),
    ...(strict !== undefined && { strict }),
  };
}

function schemaOf(key: string, parameter: ParameterDefinition): JsonSchema {
  const { type, description, keywords } = parameter;
  const schemaType = type === undefined ? undefined : schemaTypes.get(type);
  if (type !== undefined && schemaType === undefined) {
    throw invalidRequest(
      `Unsupported parameter type: ${typeof type === "string" ? type : JSON.stringify(type)}`,
      `parameters.${key}.type`,
      "invalid_value",
    );
  }
  return {
    ...(schemaType !== undefined && { type: schemaType }),
    ...(description !== undefined && { description }),
    ...(parameter.default !== undefined && { default: parameter.default }),
    ...keywords,
  };
}

function parameterOf(schema: unknown, required: boolean): ParameterDefinition {
  const { type, description, default: ownDefault, ...others } = membersOf(schema) ?? {};
  const known = parameterTypes.get(type);
  const keywords = {
    ...(type !== undefined && known === undefined && { type }),
    ...(description !== undefined && typeof description !== "string" && { description }),
    ...(schema === false && { not: {} }),
    ...others,
  };
  return {
    ...(known !== undefined && { type: known }),
    ...(typeof description === "string" && { description }),
    ...(!required && { required }),
    ...(ownDefault !== undefined && { default: ownDefault }),
    ...(Object.keys(keywords).length > 0 && { keywords }),
  };
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return isObject(value) ? value : undefined;
}
