import { withMark } from "../request/cache-mark.ts";
import { invalidRequest } from "../../core/failure.ts";
import { given, isObject, type JsonObject } from "../../core/json.ts";
import { modelName } from "../../core/hosted-tool.ts";
import type { HostedTool } from "../../core/hosted-tool.ts";
import type { ReadOptions } from "../port.ts";
import type { Tool, ToolChoice } from "../../core/message.ts";
import { nameWithin, qualifiedName } from "../../core/custom-tool.ts";
import { StepCounter, type Steps } from "../../core/steps.ts";
import type { JsonValue } from "../json-text.ts";
import { checkName, checkObjectSchema, checkSchema } from "../request/check-schema.ts";
import { arrayTooLong, invalidType, unsupportedEnumValue, unsupportedValue, valuePhrase } from "../request/refusals.ts";
import { anyObject, maxTools } from "../request/shapes.ts";
import { isClientTool, readClientTool } from "./client-tools.ts";
import { readHostedTool } from "./hosted-tools.ts";
import { toolSearch } from "./items.ts";
import {
  allowedToolsChoice,
  asSent,
  customFormat,
  customGrammar,
  customTool,
  functionTool,
  namedToolChoice,
  namespaceTool,
  parsed,
  type ResponseOptions,
  toolDeclaration,
  toolInNamespace,
  toolSearchTool,
  typed,
} from "./request-schema.ts";

/** The tools of a request. */
export interface DeclaredTools extends Pick<ResponseOptions, "asyncTools" | "grouped" | "searches" | "clientTools"> {
  readonly tools: readonly Tool[];
  readonly hosted: readonly HostedTool[];
  /** Those that this server runs. */
  readonly runnable: readonly HostedTool[];
  /** The tools as the response repeats them. */
  readonly echo: readonly JsonValue[];
}

/** A tool's schema is validated, which costs as much as this many small members. */
const workOfTool = 8;

/**
 * Reads the tools of a request: functions and custom tools that the client runs, alone or in a `namespace`, the client's search for tools,
 * and OpenAI's own tools that the client runs. All others are hosted tools, which the API's server runs. `found`: tools that the conversation brings. If the client searches, a
 * deferred tool may be called only after it is found. Throws `FailureError`.
 */
export function* readResponseTools(
  list: readonly unknown[],
  { strict, forwards, runs }: Pick<ReadOptions, "runs"> & { readonly strict: boolean; readonly forwards: boolean },
  found: readonly Tool[] = [],
): Steps<DeclaredTools> {
  const declared: Tool[] = [];
  const hosted: HostedTool[] = [];
  const echo: JsonValue[] = [];
  const asyncTools = new Set<string>();
  const clientTools = new Set<string>();
  let searches = false;
  const pace = new StepCounter();
  for (const [index, tool] of list.entries()) {
    const path = `tools[${index}]`;
    const value = parsed(anyObject(), tool, path);
    const read = readDeclaration(value, path, strict);
    echo.push(read?.shown ?? asSent(value));
    for (const name of read?.asyncNames ?? []) asyncTools.add(name);
    if (read) declared.push(...read.tools);
    else hosted.push(readHostedTool(value, path, forwards));
    searches ||= read?.isSearch ?? false;
    if (read?.isClients === true) for (const { name } of read.tools) clientTools.add(name);
    if (pace.endsStep(workOfTool * (read?.tools.length ?? 1))) yield;
  }
  const tools = declared.filter(({ deferred }) => !searches || deferred !== true);
  const names = new Set(tools.map(({ name }) => name));
  for (const { deferred: _, ...tool } of found) {
    if (!names.has(tool.name)) tools.push(tool);
    names.add(tool.name);
  }
  if (tools.length > maxTools) throw arrayTooLong("tools", maxTools, tools.length);
  const grouped = new Map<string, { readonly namespace: string; readonly name: string }>();
  for (const { name, namespace } of tools) {
    if (namespace !== undefined) grouped.set(name, { namespace, name: nameWithin(namespace, name) });
  }
  const runnable = forwards || !runs ? [] : hosted.filter(runs);
  return { tools, hosted, runnable, echo, asyncTools, grouped, searches, clientTools };
}

interface ToolDeclaration {
  readonly tools: readonly Tool[];
  readonly shown: JsonValue;
  /** The names of those whose calls do not wait for an output. */
  readonly asyncNames?: readonly string[];
  readonly isSearch: boolean;
  /** One of OpenAI's own tools that the client runs. */
  readonly isClients?: true;
}

/** Returns what an entry of a list of tools declares; null for a hosted tool. */
export function readDeclaration(value: JsonObject, path: string, strict: boolean): ToolDeclaration | null {
  const { type, description } = parsed(toolDeclaration, value, path);
  if (type === "function" || type === "custom") {
    const { tool, shown, isAsync } = readTool(type, value, path, strict);
    return { tools: [tool], shown, asyncNames: isAsync ? [tool.name] : [], isSearch: false };
  }
  if (type === "namespace") {
    const { name: namespace, tools } = parsed(namespaceTool, value, path);
    const inside = tools.map((tool, index) => {
      const place = `${path}.tools[${index}]`;
      return readTool(parsed(toolInNamespace, tool, place).type, tool, place, strict);
    });
    return {
      tools: inside.map(({ tool }) => ({ ...tool, name: qualifiedName(namespace, tool.name), namespace })),
      shown: { type, description: description ?? null, name: namespace, tools: inside.map(({ shown }) => shown) },
      asyncNames: inside.flatMap(({ tool, isAsync }) => (isAsync ? [qualifiedName(namespace, tool.name)] : [])),
      isSearch: false,
    };
  }
  const own = readClientTool(value, `${path}.parameters`);
  if (own) return { tools: [own], shown: asSent(value), isSearch: false, isClients: true };
  if (type !== "tool_search") return null;
  const { execution, parameters } = parsed(toolSearchTool, value, path);
  if (execution !== "client") return null;
  const search = { name: toolSearch, path: `${path}.parameters`, ...given({ description, parameters }) };
  return { tools: [search], shown: asSent(value), isSearch: true };
}

interface ReadTool {
  readonly tool: Tool;
  /** The tool as the response repeats it. */
  readonly shown: JsonValue;
  /** The model continues without the output of a call, which comes in a later request. */
  readonly isAsync: boolean;
}

function readTool(type: "function" | "custom", value: JsonObject, path: string, strict: boolean): ReadTool {
  if (type === "custom") return readCustom(value, path);
  // Chat's form has the members in an object. OpenAI does not take it here.
  const isChats = !strict && (value["name"] ?? null) === null && (value["function"] ?? null) !== null;
  if (!isChats) return readFunction(value, path, strict);
  const inner = `${path}.function`;
  return readFunction(parsed(anyObject(), value["function"], inner), inner, strict);
}

function readFunction(value: JsonObject, at: string, strict: boolean): ReadTool {
  const {
    name,
    description,
    parameters: requested,
    strict: isStrict,
    defer_loading: deferred,
    output_schema: output,
    async: isAsync,
  } = parsed(functionTool, value, at);
  const path = `${at}.parameters`;
  if (strict) checkName(`${at}.name`, name);
  const about = { subject: `function '${name}'`, param: path, code: "invalid_function_parameters" };
  checkObjectSchema(requested ?? {}, { judgesAsVendor: strict }, about);
  // OpenAI makes a function strict if the client does not say whether it is (all of 84 recordings); no other server does.
  const made = strict && isStrict === undefined && requested ? toStrictSchema(requested) : null;
  // A function without parameters has an empty object.
  if (strict) checkSchema(requested ?? { type: "object" }, isStrict === true, about);
  const parameters = made ?? requested ?? undefined;
  const binds = made === null ? (isStrict ?? undefined) : true;
  const tool = withMark<Tool>({ name, path, ...given({ description, parameters, strict: binds, deferred }) }, value);
  const shown = {
    type: "function",
    async: isAsync ?? undefined,
    defer_loading: deferred ?? undefined,
    description: description ?? null,
    name,
    output_schema: strict ? asSent(output ?? null) : undefined,
    parameters: asSent(parameters ?? null),
    strict: binds ?? false,
  };
  return { tool, shown, isAsync: isAsync === true };
}

function readCustom(value: JsonObject, path: string): ReadTool {
  const { name, description, format, async: isAsync } = parsed(customTool, value, path);
  const place = `${path}.format`;
  const type = format ? parsed(customFormat, format, place).type : "text";
  const inputGrammar = type === "grammar" ? parsed(customGrammar, format, place) : undefined;
  const tool = withMark<Tool>({ name, kind: "custom", path: place, ...given({ description, inputGrammar }) }, value);
  const shownFormat = { type, definition: inputGrammar?.definition, syntax: inputGrammar?.syntax };
  const shown = {
    type: "custom",
    async: isAsync ?? undefined,
    description: description ?? null,
    format: shownFormat,
    name,
  };
  return { tool, shown, isAsync: isAsync === true };
}

/**
 * Reads the choice of tools, and checks it against the tools. A hosted tool that nothing here runs cannot be forced. `forwards`: another
 * server judges that. Throws `FailureError`.
 */
export function readToolChoice(
  value: unknown,
  { tools, hosted, runnable }: Pick<DeclaredTools, "tools" | "hosted" | "runnable">,
  forwards: boolean,
): ToolChoice | undefined {
  if (typeof value === "string") {
    if (value !== "none" && value !== "auto" && value !== "required") {
      throw unsupportedEnumValue("tool_choice", value, ["none", "auto", "required"]);
    }
    const hasTools = tools.length + runnable.length > 0;
    if (value !== "required") return hasTools ? { type: value } : undefined;
    if (tools.length === 0 && hosted.length === 0) {
      throw invalidRequest("Tool choice 'required' must be specified with 'tools' parameter.", "tool_choice");
    }
    if (!hasTools && !forwards) throw unsupportedValue("tool_choice", "'required'");
    return hasTools ? { type: value } : undefined;
  }
  if (!isObject(value)) throw invalidType("tool_choice", "one of a string or object", valuePhrase(value));
  const { type } = parsed(typed, value, "tool_choice");
  if (isRunByClient(type)) return { type: "named", name: chosenName(value, "tool_choice", tools) };
  if (tools.some(({ name }) => name === type && isClientTool(type))) return { type: "named", name: type };
  if (type !== "allowed_tools") {
    if (forwards) return undefined;
    const chosen = hostedName(value, runnable);
    if (chosen !== undefined) return { type: "named", name: chosen };
    if (type === "mcp" && runnable.some(({ name }) => name === value["server_label"])) return { type: "required" };
    throw unsupportedValue("tool_choice", `'${type}'`);
  }
  const choice = parsed(allowedToolsChoice, value, "tool_choice");
  const { mode } = choice;
  const allowedHosted = choice.tools.flatMap((tool) => hostedName(tool, runnable) ?? []);
  const allowed = choice.tools
    .map((tool, index) => ({ tool, path: `tool_choice.tools[${index}]` }))
    .filter(({ tool, path }) => {
      const { type: own } = parsed(typed, tool, path);
      return isRunByClient(own) || tools.some(({ name }) => name === own && isClientTool(own));
    });
  if (allowed.length + allowedHosted.length === 0) {
    if (mode === "required" && !forwards) throw unsupportedValue("tool_choice", "'allowed_tools'");
    return { type: "none" };
  }
  const names = allowed.map(({ tool, path }) => chosenName(tool, path, tools));
  return { type: "allowed", mode, names: [...names, ...allowedHosted] };
}

/** The name by which the model knows the hosted tool that a choice names: `{ type: "web_search" }`, or a function of an MCP server. */
function hostedName(
  { type, server_label: label, name }: JsonObject,
  runnable: readonly HostedTool[],
): string | undefined {
  const tool = runnable.find((one) => (one.kind === "mcp" ? type === "mcp" && one.name === label : one.type === type));
  if (tool?.kind === "mcp" && typeof name !== "string") return undefined;
  return tool && modelName({ kind: tool.kind, tool: tool.name, name: typeof name === "string" ? name : tool.name });
}

function isRunByClient(type: string): boolean {
  return type === "function" || type === "custom";
}

function chosenName(choice: JsonObject, path: string, tools: readonly Tool[]): string {
  const { type } = choice;
  if (typeof type === "string" && isClientTool(type)) return type;
  const { name: own, namespace } = parsed(namedToolChoice, choice, path);
  const name = namespace === undefined || namespace === null ? own : qualifiedName(namespace, own);
  if (tools.some((tool) => tool.name === name)) return name;
  throw invalidRequest(`Tool choice '${own}' not found in 'tools' parameter.`, `${path}.name`);
}

/** More levels than a schema has that a person writes. Limits the recursion for schemas that are made to exhaust it. */
const maxDepth = 200;

class CannotBeStrict extends Error {}

/**
 * Makes a schema strict, as OpenAI does if the client does not say whether it is: every object closed and all its properties required.
 * Returns null if the schema has objects that are meant to be open. New members follow those that are there. Source: 84 recorded requests
 * with their responses.
 */
export function toStrictSchema(schema: JsonObject): JsonObject | null {
  try {
    return strictObject(schema, 0);
  } catch (error) {
    if (error instanceof CannotBeStrict) return null;
    throw error;
  }
}

function strictObject(schema: JsonObject, depth: number): JsonObject {
  if (depth > maxDepth) throw new CannotBeStrict();
  // Without a prototype: a member named "__proto__" is a member like any other.
  const made: Record<string, unknown> = Object.create(null);
  for (const [keyword, value] of Object.entries(schema)) made[keyword] = strictMember(keyword, value, depth);
  if (schema["type"] !== "object" && schema["properties"] === undefined) return made;
  const { additionalProperties: others, properties } = schema;
  if ((others !== undefined && others !== false) || schema["patternProperties"] !== undefined)
    throw new CannotBeStrict();
  made["additionalProperties"] = false;
  made["required"] = Object.keys(isObject(properties) ? properties : {});
  return made;
}

function strictMember(keyword: string, value: unknown, depth: number): unknown {
  switch (keyword) {
    case "properties":
    case "$defs":
    case "definitions":
      if (!isObject(value)) return value;
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, strictValue(inner, depth)]));
    case "items":
      return strictValue(value, depth);
    case "anyOf":
    case "oneOf":
    case "allOf":
      return Array.isArray(value) ? value.map((inner) => strictValue(inner, depth)) : value;
    default:
      return value;
  }
}

function strictValue(value: unknown, depth: number): unknown {
  return isObject(value) ? strictObject(value, depth + 1) : value;
}
