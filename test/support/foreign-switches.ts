import type { Format, Reasoning } from "../../src/text/formats/format.ts";
import { type ParsedText, type ParseJob, parseMessage } from "../../src/text/formats/parse-job.ts";
import { isObject, type JsonObject } from "../../src/wire/core/json.ts";
import { readJob } from "../../src/serve/cli/parse-action.ts";

/**
 * Reads a test vector as a job of `truewire parse --jsonl`, including the switches that other servers' own tests have in `params`:
 * llama.cpp's `json_schema`, `continue_final_message` and `_force_nonempty_content`, SGLang's `force_reasoning` and `tool_start_token`,
 * vLLM's formats that end in `-append`, Ollama's boxed booleans. Throws an Error that says what is wrong.
 */
export function parseLine(line: unknown): ParsedText {
  const message = parseMessage(jobOfLine(line));
  const params = paramsOf(line);
  if (params["_force_nonempty_content"] === true && message.content.trim() === "")
    return { ...message, content: message.reasoning, reasoning: "" };
  // llama.cpp takes the fence off an answer in JSON; here a grammar lets none be written.
  return params["json_schema"] ? { ...message, content: withoutFence(message.content) } : message;
}

/** The line as a job, its switches said in the job's own terms. Throws an Error that says what is wrong. */
export function jobOfLine(line: unknown): ParseJob {
  const params = paramsOf(line);
  const format = isObject(line) && typeof line["format"] === "string" ? line["format"] : "";
  // vLLM's `…_append` parsers put the opener in front and leave all in the content.
  const append = format.endsWith("-append");
  // Ollama writes a Boolean as {"$type": …, "Value": true}.
  const thinking = boxed(params["enable_thinking"] ?? params["thinking"]);
  const plain = isObject(line) && {
    ...line,
    ...(append && { format: format.slice(0, -"-append".length) }),
    params: { ...params, enable_thinking: thinking },
  };
  const job = readJob(plain || line);
  const { chunks } = job;
  const read = { ...job, format: adapted(job.format, params) };
  if (append)
    return begun({ format: read.format, text: job.text, separateReasoning: false }, openerOf(read.format), chunks);
  const continues = params["continue_final_message"] !== undefined && params["continue_final_message"] !== false;
  return continues ? continued(read, chunks) : withBegunReasoning(read, chunks);
}

/** The client began the message, at the end of the prompt, and the result holds its beginning. */
function continued(job: ParseJob, chunks: readonly string[] | undefined): ParseJob {
  const { prefix = "", ...rest } = job;
  const at = turnStart(prefix, job.format);
  const kept = job.format.kind === "routed" ? {} : { prefix: prefix.slice(0, at) };
  return begun({ ...rest, ...kept }, prefix.slice(at), chunks);
}

/**
 * llama.cpp returns reasoning that begins in the prompt; where reasoning stays in the content, it shows the prompt's opener only if
 * the text has its close, which is not known while the text comes.
 */
function withBegunReasoning(job: ParseJob, chunks: readonly string[] | undefined): ParseJob {
  const { prefix, format } = job;
  const opener = format.reasoning?.open.find((open) => prefix?.includes(open));
  if (prefix === undefined || opener === undefined || format.kind === "routed") return job;
  const at = prefix.lastIndexOf(opener) + opener.length;
  if (format.reasoning?.close.some((close) => prefix.includes(close, at))) return job;
  const hidden = job.separateReasoning === false && !closesReasoning(job.text, format.reasoning);
  return begun({ ...job, prefix: prefix.slice(0, hidden ? at - opener.length : at) }, prefix.slice(at), chunks);
}

function closesReasoning(text: string, reasoning: Reasoning | undefined): boolean {
  const first = (markers: readonly string[] = []): number =>
    Math.min(...markers.map((marker) => text.indexOf(marker)).map((at) => (at < 0 ? Infinity : at)));
  const close = first(reasoning?.close);
  return close < Infinity && first(reasoning?.endedBy) >= close;
}

function begun(job: ParseJob, beginning: string, chunks: readonly string[] | undefined): ParseJob {
  return { ...job, text: beginning + job.text, ...(chunks && { chunks: [beginning, ...chunks] }) };
}

/** Where the assistant's own text begins: after the last role marker. */
function turnStart(prefix: string, format: Format): number {
  if (format.kind === "routed") return Math.max(0, prefix.indexOf(format.start));
  const own = new Set<string>([...(format.reasoning?.open ?? []), ...(format.reasoning?.close ?? [])]);
  let at = 0;
  for (const found of prefix.matchAll(/(?:<[^<>\s]*>|\[\/?INST\]|\]~b\]ai|\b(?:[Aa]ssistant|model)(?:\n|: ?))\n*/g)) {
    if (!own.has(found[0].trim())) at = found.index + found[0].length;
  }
  return at;
}

/** SGLang's switches: a text begins inside reasoning; a marker of calls also ends reasoning. */
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

function openerOf({ reasoning }: Format): string {
  return reasoning?.open[0] ?? "";
}

function paramsOf(line: unknown): JsonObject {
  return isObject(line) && isObject(line["params"]) ? line["params"] : {};
}

function boxed(value: unknown): unknown {
  return typeof value === "object" && value !== null && "Value" in value ? value.Value : value;
}

function withoutFence(text: string): string {
  return /^\s*```(?:json)?\s*\n([^]*?)\n?```\s*$/.exec(text)?.[1] ?? text;
}
