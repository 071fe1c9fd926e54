import type { Tool } from "../generation/message.ts";
import type { Format } from "./format.ts";
import { requireFormat } from "./known.ts";
import type { ParseJob, ParsedMessage } from "./parse-job.ts";

/**
 * Reads a job of `truewire parse --jsonl`: `{format, text, prefix?, tools?, params?, chunks?}`. Throws an Error that says what is wrong.
 * Of `params`: `reasoning_format` ("none": no separation), `enable_thinking` / `thinking`, `force_reasoning` (the text starts inside a
 * thought), `continue_final_message`, `json_schema`. A format name that ends with `-append` puts the thought's opener in front and
 * leaves all in the content.
 */
export function readJob(value: unknown): ParseJob {
  if (!isRecord(value)) throw new Error("a job must be an object");
  const { format: name, text, prefix, tools, chunks } = value;
  if (typeof name !== "string") throw new Error("format: must be a string");
  if (typeof text !== "string") throw new Error("text: must be a string");
  if (prefix !== undefined && prefix !== null && typeof prefix !== "string")
    throw new Error("prefix: must be a string");
  const append = name.endsWith("-append");
  const format = requireFormat(append ? name.slice(0, -"-append".length) : name);
  const params = isRecord(value["params"]) ? value["params"] : {};
  const thinking = plainValue(params["enable_thinking"] ?? params["thinking"]);
  if (append) return { format, text: (format.reasoning?.open[0] ?? "") + text, separateReasoning: false };
  return {
    format: adapted(format, params),
    text,
    ...(typeof prefix === "string" && { prefix }),
    ...(tools !== undefined && tools !== null && { tools: readTools(tools) }),
    ...(Array.isArray(chunks) && { chunks: chunks.map(String) }),
    ...(typeof thinking === "boolean" && { thinking }),
    ...(params["reasoning_format"] === "none" && { separateReasoning: false }),
    continues: params["continue_final_message"] !== undefined && params["continue_final_message"] !== false,
    nonemptyContent: params["_force_nonempty_content"] === true,
    json: typeof params["json_schema"] === "string" && params["json_schema"] !== "",
  };
}

/** The format as the switches of a server change it. */
function adapted(format: Format, params: Readonly<Record<string, unknown>>): Format {
  const { reasoning } = format;
  if (!reasoning) return format;
  const ending = params["tool_start_token"];
  return {
    ...format,
    reasoning: {
      ...reasoning,
      ...(params["force_reasoning"] === true && { assume: "inside" }),
      ...(typeof ending === "string" && { endedBy: [...(reasoning.endedBy ?? []), ending] }),
    },
  };
}

/** Ollama's `{"$type": …, "Value": true}` is true. */
function plainValue(value: unknown): unknown {
  return isRecord(value) && "Value" in value ? value["Value"] : value;
}

/** Reads tools as they stand in a request, `{type, function: {name, …}}`, `{type, custom: {name, …}}`, or the functions alone. */
export function readTools(value: unknown): Tool[] {
  if (!Array.isArray(value)) throw new Error("tools: must be an array");
  return value.map((entry: unknown, index) => {
    const custom = isRecord(entry) && isRecord(entry["custom"]) ? entry["custom"] : undefined;
    const tool = custom ?? (isRecord(entry) && isRecord(entry["function"]) ? entry["function"] : entry);
    if (!isRecord(tool) || typeof tool["name"] !== "string") throw new Error(`tools[${index}]: has no name`);
    const { name, description, parameters } = tool;
    return {
      name,
      ...(custom && { kind: "custom" as const }),
      ...(typeof description === "string" && { description }),
      ...((isRecord(parameters) || typeof parameters === "boolean") && { parameters }),
    };
  });
}

/** A message as `truewire parse` prints it. */
export function writeResult({ content, reasoning, calls }: ParsedMessage): Record<string, unknown> {
  const written = calls.map(({ name, arguments: text, kind }) => {
    return kind === "custom" ? { name, input: text } : { name, arguments: text };
  });
  return { content, reasoning, tool_calls: written };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
