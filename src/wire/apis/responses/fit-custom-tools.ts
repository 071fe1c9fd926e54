import { argumentsOfInput } from "../../core/custom-tool.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import type { Tool } from "../../core/message.ts";
import type { Adaptation } from "../adapt/adaptations.ts";
import { asFunction } from "../adapt/custom-tools.ts";
import type { NoteAdaptation } from "../adapt/server-profile.ts";

/**
 * Writes custom tools, choices of them, and their earlier calls and results as functions, for a server with Responses that accepts only
 * functions. Source of the objects: https://platform.openai.com/docs/api-reference/responses/create.
 */
export const customToolsOfResponses: Adaptation = {
  name: "custom-tool",
  isNeeded: ({ customTools }) => customTools === false,
  adapt(body, { note }) {
    const { tools, tool_choice: choice, input } = body;
    return {
      ...body,
      ...(Array.isArray(tools) && { tools: tools.map((tool: unknown, at) => functionOf(tool, `tools[${at}]`, note)) }),
      ...(isObject(choice) && { tool_choice: functionChoice(choice) }),
      ...(Array.isArray(input) && {
        input: input.map((item: unknown, at) => functionItem(item, `input[${at}]`, note)),
      }),
    };
  },
};

/** A namespace has tools inside it. */
function functionOf(tool: unknown, place: string, note: NoteAdaptation): unknown {
  if (!isObject(tool)) return tool;
  const { type, tools } = tool;
  if (type === "namespace" && Array.isArray(tools))
    return { ...tool, tools: tools.map((inner: unknown, at) => functionOf(inner, `${place}.tools[${at}]`, note)) };
  if (type !== "custom") return tool;
  note("custom-tool", `${place}.type`);
  const { format: _, type: __, name, ...others } = tool;
  const { description, parameters } = asFunction(customTool(tool));
  return { type: "function", name, ...others, description, parameters, strict: false };
}

function customTool({ name, description, format }: JsonObject): Tool {
  const { type, syntax, definition } = isObject(format) ? format : {};
  const hasGrammar = type === "grammar" && (syntax === "lark" || syntax === "regex") && typeof definition === "string";
  return {
    name: String(name),
    kind: "custom",
    ...(typeof description === "string" && { description }),
    ...(hasGrammar && { inputGrammar: { syntax, definition } }),
  };
}

function functionChoice(choice: JsonObject): JsonObject {
  const { type, tools } = choice;
  if (Array.isArray(tools))
    return { ...choice, tools: tools.map((tool: unknown) => (isObject(tool) ? functionChoice(tool) : tool)) };
  return type === "custom" ? { ...choice, type: "function" } : choice;
}

function functionItem(item: unknown, place: string, note: NoteAdaptation): unknown {
  if (!isObject(item)) return item;
  const { type, input, ...others } = item;
  if (type === "custom_tool_call") {
    note("custom-tool", `${place}.type`);
    const text = argumentsOfInput(typeof input === "string" ? input : "");
    // The id of an item says its type.
    const { id: _, ...rest } = others;
    return { type: "function_call", ...rest, arguments: JSON.stringify(text) };
  }
  return type === "custom_tool_call_output" ? { ...item, type: "function_call_output" } : item;
}
