import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { findFormat } from "../../text/formats/find-format.ts";
import type { Format } from "../../text/formats/format.ts";
import { requireFormat } from "../../text/formats/known.ts";
import { type ParsedText, parseEvents, type ParseJob, parseMessage } from "../../text/formats/parse-job.ts";
import { ChatTemplate } from "../../text/templates/chat-template.ts";
import { templateMetadata } from "../../text/templates/template-metadata.ts";
import { isGguf, templateInGguf } from "./gguf-template.ts";
import { isObject } from "../../wire/core/json.ts";
import type { Tool } from "../../wire/core/message.ts";

/** The options of `truewire parse`, as they are written on the command line. */
export interface ParseOptions {
  readonly format?: string;
  readonly template?: string;
  readonly tools?: string;
  readonly prefix?: string;
  readonly events?: true;
  readonly jsonl?: true;
}

/** Runs `truewire parse`. */
export async function parse(options: ParseOptions): Promise<void> {
  if (options.jsonl) return await parseLines();
  const job = {
    format: chooseFormat(options),
    text: await text(process.stdin),
    ...(options.prefix !== undefined && { prefix: options.prefix.replaceAll("\\n", "\n") }),
    ...(options.tools !== undefined && { tools: readTools(JSON.parse(readFileSync(options.tools, "utf8").trim())) }),
  };
  if (options.events) {
    const { events, warnings } = parseEvents({ ...job, trace: true });
    for (const event of events) print(event);
    warn(warnings);
  } else {
    const message = parseMessage(job);
    process.stdout.write(`${JSON.stringify(writeResult(message), null, 2)}\n`);
    warn(message.warnings ?? []);
  }
}

function warn(warnings: readonly string[]): void {
  for (const warning of warnings) console.error(`truewire: ${warning}`);
}

/** One job a line, one result a line, in order. A line that cannot be read has a result that says so. */
async function parseLines(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    if (line.trim() === "") continue;
    let id: unknown = null;
    try {
      const value: unknown = JSON.parse(line.trim());
      if (typeof value === "object" && value !== null && "id" in value) ({ id } = value);
      const message = parseMessage(readJob(value));
      const { warnings } = message;
      print({ id, ...writeResult(message), ...(warnings && { warnings }) });
    } catch (error) {
      print({ id, error: error instanceof Error ? error.message : String(error) });
      process.exitCode = 1;
    }
  }
}

function chooseFormat({ format, template }: ParseOptions): Format {
  if (format !== undefined) return requireFormat(format);
  if (template === undefined) throw new Error("say --format NAME or --template FILE");
  const source = isGguf(template) ? templateInGguf(template).source : readFileSync(template, "utf8");
  return findFormat(new ChatTemplate({ source, specialTokens: [] }), templateMetadata(source));
}

function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

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
