import { isObject } from "../core/json.ts";
import type { Tool } from "../core/message.ts";
import { requireFormat } from "../formats/known.ts";
import type { ParseJob, ParsedText } from "../formats/parse-job.ts";

/**
 * Reads a job of `truewire parse --jsonl`: `{format, text, prefix?, tools?, params?, chunks?}`. Throws an Error that says what is wrong.
 * Of `params` it reads what a request may say as well: `reasoning_format` ("none": reasoning stays in the content), `enable_thinking` or
 * `thinking`.
 */
export function readJob(value: unknown): ParseJob {
  if (!isObject(value)) throw new Error("a job must be an object");
  const { format, text, prefix, tools, chunks } = value;
  if (typeof format !== "string") throw new Error("format: must be a string");
  if (typeof text !== "string") throw new Error("text: must be a string");
  if (prefix !== undefined && prefix !== null && typeof prefix !== "string")
    throw new Error("prefix: must be a string");
  const params = isObject(value["params"]) ? value["params"] : {};
  const thinking = params["enable_thinking"] ?? params["thinking"];
  return {
    format: requireFormat(format),
    text,
    ...(typeof prefix === "string" && { prefix }),
    ...(tools !== undefined && tools !== null && { tools: readTools(tools) }),
    ...(Array.isArray(chunks) && { chunks: chunks.map(String) }),
    ...(typeof thinking === "boolean" && { thinking }),
    ...(params["reasoning_format"] === "none" && { separateReasoning: false }),
  };
}

/** Reads tools in the form of a request (`{type, function: {name, …}}`, `{type, custom: {name, …}}`) or as functions only. */
export function readTools(value: unknown): Tool[] {
  if (!Array.isArray(value)) throw new Error("tools: must be an array");
  return value.map((entry: unknown, index) => {
    const custom = isObject(entry) && isObject(entry["custom"]) ? entry["custom"] : undefined;
    const tool = custom ?? (isObject(entry) && isObject(entry["function"]) ? entry["function"] : entry);
    if (!isObject(tool) || typeof tool["name"] !== "string") throw new Error(`tools[${index}]: has no name`);
    const { name, description, parameters } = tool;
    return {
      name,
      ...(custom && { kind: "custom" as const }),
      ...(typeof description === "string" && { description }),
      ...((isObject(parameters) || typeof parameters === "boolean") && { parameters }),
    };
  });
}

/** A message as `truewire parse` prints it. */
export function writeResult({ content, reasoning, calls }: ParsedText): Record<string, unknown> {
  const written = calls.map(({ name, arguments: text, kind }) => {
    return kind === "custom" ? { name, input: text } : { name, arguments: text };
  });
  return { content, reasoning, tool_calls: written };
}
