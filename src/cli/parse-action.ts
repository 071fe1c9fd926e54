import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { findFormat } from "../formats/find-format.ts";
import type { Format } from "../formats/format.ts";
import { requireFormat } from "../formats/known.ts";
import { readJob, readTools, writeResult } from "./parse-line.ts";
import { parseEvents, parseMessage } from "../formats/parse-job.ts";
import { ChatTemplate } from "../templates/chat-template.ts";
import { templateMetadata } from "../templates/template-metadata.ts";
import { isGguf, templateInGguf } from "./gguf-template.ts";

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
  const chunks: string[] = [];
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) chunks.push(String(chunk));
  const job = {
    format: chooseFormat(options),
    text: chunks.join(""),
    ...(options.prefix !== undefined && { prefix: options.prefix.replaceAll("\\n", "\n") }),
    ...(options.tools !== undefined && { tools: readTools(JSON.parse(readFileSync(options.tools, "utf8"))) }),
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
      const value: unknown = JSON.parse(line);
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
