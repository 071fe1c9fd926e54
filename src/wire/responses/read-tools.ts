import { invalidRequest } from "../../generation/failure.ts";
import type { HostedTool, Tool } from "../../generation/message.ts";
import { qualifiedName } from "../../generation/qualified-name.ts";
import type { JsonValue } from "../json-text.ts";
import { checkName } from "../request/output-parameters.ts";
import { checkStrictSchema } from "../request/strict-schema.ts";
import { RawMembers } from "./raw-members.ts";
import { madeStrict } from "./made-strict.ts";

export interface ReadTools {
  readonly tools: readonly Tool[];
  readonly hosted: readonly HostedTool[];
  /** As the response repeats them. */
  readonly echo: readonly JsonValue[];
  /** Those of groups, by the name under which a model knows them. */
  readonly grouped: ReadonlyMap<string, { readonly namespace: string; readonly name: string }>;
}

/** Functions and custom tools that the client runs, alone or in a `namespace`; all others are tools that the API's server would run. */
export function readTools(list: readonly unknown[], strict: boolean): ReadTools {
  const tools: Tool[] = [];
  const hosted: HostedTool[] = [];
  const echo: JsonValue[] = [];
  const grouped = new Map<string, { readonly namespace: string; readonly name: string }>();
  for (const [index, raw] of list.entries()) {
    const members = new RawMembers(raw, `tools[${index}]`);
    const type = members.string("type");
    if (type === "function" || type === "custom") {
      const { tool, shown } = readTool(members, type, strict);
      tools.push(tool);
      echo.push(shown);
    } else if (type === "namespace") {
      const namespace = members.string("name");
      const inside = members
        .list("tools")
        .map((member) => readTool(member, member.word("type", ["function", "custom"]), strict));
      for (const { tool } of inside) {
        const name = qualifiedName(namespace, tool.name);
        grouped.set(name, { namespace, name: tool.name });
        tools.push({ ...tool, name, namespace });
      }
      const description = members.optionalString("description") ?? null;
      echo.push({ type, description, name: namespace, tools: inside.map(({ shown }) => shown) });
    } else {
      hosted.push({ type, declaration: members.value });
      echo.push(asSent(members.value));
    }
  }
  return { tools, hosted, echo, grouped };
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
  if (isStrict === true && strict && asked) {
    checkStrictSchema(asked, `function '${name}'`, path, "invalid_function_parameters");
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
