import { invalidRequest } from "../../core/failure.ts";
import type { HostedTool, Tool } from "../../core/message.ts";
import { nameWithin, qualifiedName } from "../../core/qualified-name.ts";
import { Pace } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import type { JsonValue } from "../json-text.ts";
import { checkName } from "../request/check-name.ts";
import { mostTools } from "../request/size-limits.ts";
import { arrayTooLong } from "../request/refusals.ts";
import { checkSchema } from "../request/check-schema.ts";
import { toolSearch } from "./call-kind.ts";
import { RawMembers } from "./raw-members.ts";
import { madeStrict } from "./made-strict.ts";

export interface ReadTools {
  readonly tools: readonly Tool[];
  readonly hosted: readonly HostedTool[];
  /** As the response repeats them. */
  readonly echo: readonly JsonValue[];
  /** Those of groups, by the name under which a model knows them. */
  readonly grouped: ReadonlyMap<string, { readonly namespace: string; readonly name: string }>;
  /** The client searches for tools itself, when the model calls `toolSearch`. */
  readonly searches: boolean;
}

/** A tool has a schema, which is looked through: as much work as so many small things. */
const thingsInTool = 8;

/**
 * Functions and custom tools that the client runs, alone or in a `namespace`, and its search for tools; all others are tools that the API's
 * server would run. `found`: tools that the conversation brings. Where the client searches, a deferred tool is there once it is found.
 */
export function* readTools(list: readonly unknown[], strict: boolean, found: readonly Tool[] = []): Steps<ReadTools> {
  const declared: Tool[] = [];
  const hosted: HostedTool[] = [];
  const echo: JsonValue[] = [];
  let searches = false;
  const pace = new Pace();
  for (const [index, raw] of list.entries()) {
    const members = new RawMembers(raw, `tools[${index}]`);
    const read = readDeclaration(members, strict);
    echo.push(read?.shown ?? asSent(members.value));
    if (read) declared.push(...read.tools);
    else hosted.push({ type: members.string("type"), declaration: members.value });
    searches ||= read?.isSearch ?? false;
    if (pace.isOver(thingsInTool * (read?.tools.length ?? 1))) yield;
  }
  const tools = declared.filter(({ deferred }) => !searches || deferred !== true);
  const names = new Set(tools.map(({ name }) => name));
  for (const { deferred: _, ...tool } of found) {
    if (!names.has(tool.name)) tools.push(tool);
    names.add(tool.name);
  }
  if (tools.length > mostTools) throw arrayTooLong("tools", mostTools, tools.length);
  const grouped = new Map<string, { readonly namespace: string; readonly name: string }>();
  for (const { name, namespace } of tools) {
    if (namespace !== undefined) grouped.set(name, { namespace, name: nameWithin(namespace, name) });
  }
  return { tools, hosted, echo, grouped, searches };
}

interface Declaration {
  readonly tools: readonly Tool[];
  readonly shown: JsonValue;
  readonly isSearch: boolean;
}

/** What an entry of a list of tools declares; null: a tool that the API's server would run. */
export function readDeclaration(members: RawMembers, strict: boolean): Declaration | null {
  const type = members.string("type");
  const description = members.optionalString("description");
  if (type === "function" || type === "custom") {
    const { tool, shown } = readTool(members, type, strict);
    return { tools: [tool], shown, isSearch: false };
  }
  if (type === "namespace") {
    const namespace = members.string("name");
    const inside = members
      .list("tools")
      .map((member) => readTool(member, member.word("type", ["function", "custom"]), strict));
    return {
      tools: inside.map(({ tool }) => ({ ...tool, name: qualifiedName(namespace, tool.name), namespace })),
      shown: { type, description: description ?? null, name: namespace, tools: inside.map(({ shown }) => shown) },
      isSearch: false,
    };
  }
  if (type !== "tool_search" || members.optionalString("execution") !== "client") return null;
  const parameters = members.optionalObject("parameters")?.value;
  const search: Tool = {
    name: toolSearch,
    path: members.at("parameters"),
    ...(description !== undefined && { description }),
    ...(parameters && { parameters }),
  };
  return { tools: [search], shown: asSent(members.value), isSearch: true };
}

interface ReadTool {
  readonly tool: Tool;
  readonly shown: JsonValue;
}

function readTool(members: RawMembers, type: "function" | "custom", strict: boolean): ReadTool {
  return type === "custom" ? readCustom(members) : readFunction(members, strict);
}

/** A function; chat's form, with the members in an object, is taken where OpenAI's judgement is not asked for. */
function readFunction(outer: RawMembers, strict: boolean): ReadTool {
  const members = (strict || outer.has("name") ? undefined : outer.optionalObject("function")) ?? outer;
  const name = members.string("name");
  const description = members.optionalString("description");
  const asked = members.optionalObject("parameters")?.value;
  const isStrict = members.optionalBoolean("strict");
  const deferred = members.optionalBoolean("defer_loading");
  const path = members.at("parameters");
  if (strict) checkName(members.at("name"), name);
  const { type } = asked ?? {};
  if (type !== undefined && type !== "object") {
    const message = `Invalid schema for function '${name}': schema must be a JSON Schema of 'type: "object"', got 'type: ${JSON.stringify(type)}'.`;
    throw invalidRequest(message, path, "invalid_function_parameters");
  }
  // OpenAI makes a function strict where the client does not say (all of 84 recordings); elsewhere nobody does.
  const made = strict && members.value["strict"] === undefined && asked ? madeStrict(asked) : null;
  if (strict && asked) {
    const subject = `function '${name}'`;
    checkSchema(asked, isStrict === true, { subject, param: path, code: "invalid_function_parameters" });
  }
  const parameters = made ?? asked;
  const binds = made === null ? isStrict : true;
  const tool: Tool = {
    name,
    path,
    ...(description !== undefined && { description }),
    ...(parameters && { parameters }),
    ...(binds !== undefined && { strict: binds }),
    ...(deferred !== undefined && { deferred }),
  };
  const shown = {
    type: "function",
    defer_loading: deferred,
    description: description ?? null,
    name,
    output_schema: strict ? asSent(members.value["output_schema"] ?? null) : undefined,
    parameters: asSent(parameters ?? null),
    strict: binds ?? false,
  };
  return { tool, shown };
}

function readCustom(members: RawMembers): ReadTool {
  const name = members.string("name");
  const description = members.optionalString("description");
  const format = members.optionalObject("format");
  const shownFormat: { [name: string]: string } = { type: format?.word("type", ["text", "grammar"]) ?? "text" };
  let inputGrammar: Tool["inputGrammar"];
  if (format && shownFormat["type"] === "grammar") {
    inputGrammar = { syntax: format.word("syntax", ["lark", "regex"]), definition: format.string("definition") };
    shownFormat["definition"] = inputGrammar.definition;
    shownFormat["syntax"] = inputGrammar.syntax;
  }
  const tool: Tool = {
    name,
    kind: "custom",
    path: members.at("format"),
    ...(description !== undefined && { description }),
    ...(inputGrammar && { inputGrammar }),
  };
  return { tool, shown: { type: "custom", description: description ?? null, format: shownFormat, name } };
}

/** A value as the client sent it: it was read from JSON. */
export function asSent(value: unknown): JsonValue {
  return value as JsonValue;
}
