import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Format, Reasoning } from "../../src/formats/format.ts";
import { parseMessage } from "../../src/formats/parse-job.ts";
import type { ParseJob, ParsedMessage } from "../../src/formats/parse-job.ts";
import { readJob } from "../../src/cli/parse-line.ts";

/** A raw text of a model with the message that it must become, from the tests of another server. */
export interface Vector {
  readonly id: string;
  readonly tier: string;
  readonly format: string;
  readonly text: string;
  readonly prefix?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly chunks?: readonly string[];
  readonly expect: { content?: string; reasoning?: string; tool_calls?: { name: string; arguments: unknown }[] };
}

const folder = new URL("../../../shared/vectors/", import.meta.url).pathname;

/** All vectors; none where ../shared is absent. */
export function readVectors(): Vector[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl") && !name.startsWith("_"))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"))
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Vector);
}

/**
 * What Truewire makes of a vector's text, in these pieces. The switches of the servers that the vectors come from are said in the job's
 * own terms here: Truewire reads a text as `serve` does, which has none of them.
 */
export function readVector(vector: Vector, chunks?: readonly string[]): ParsedMessage {
  const message = parseMessage(jobOf(vector, chunks));
  if (vector.params?.["_force_nonempty_content"] === true && message.content.trim() === "")
    return { ...message, content: message.reasoning, reasoning: "" };
  // llama.cpp takes the fence off an answer in JSON; here a grammar lets none be written.
  return vector.params?.["json_schema"] ? { ...message, content: withoutFence(message.content) } : message;
}

/** The vector as a job. */
export function jobOf(vector: Vector, chunks?: readonly string[]): ParseJob {
  const { params = {} } = vector;
  // vLLM's `…_append` parsers put the opener in front and leave all in the content.
  const append = vector.format.endsWith("-append");
  const name = append ? vector.format.slice(0, -"-append".length) : vector.format;
  // Ollama writes a Boolean as {"$type": …, "Value": true}.
  const thinking = boxed(params["enable_thinking"] ?? params["thinking"]);
  const job = readJob({ ...vector, format: name, params: { ...params, enable_thinking: thinking }, chunks });
  const read = { ...job, format: adapted(job.format, params) };
  if (append)
    return begun({ format: read.format, text: job.text, separateReasoning: false }, openerOf(read.format), chunks);
  const continues = params["continue_final_message"] !== undefined && params["continue_final_message"] !== false;
  return continues ? continued(read, chunks) : withBegunThought(read, chunks);
}

/** The client began the message, at the end of the prompt, and the result holds its beginning. */
function continued(job: ParseJob, chunks: readonly string[] | undefined): ParseJob {
  const { prefix = "", ...rest } = job;
  const at = turnStart(prefix, job.format);
  const kept = job.format.kind === "routed" ? {} : { prefix: prefix.slice(0, at) };
  return begun({ ...rest, ...kept }, prefix.slice(at), chunks);
}

/**
 * llama.cpp gives back what the prompt has begun of a thought; where reasoning stays in the content, it shows the prompt's opener only if
 * the text has its close, which is not known while the text comes.
 */
function withBegunThought(job: ParseJob, chunks: readonly string[] | undefined): ParseJob {
  const { prefix, format } = job;
  const opener = format.reasoning?.open.find((open) => prefix?.includes(open));
  if (prefix === undefined || opener === undefined || format.kind === "routed") return job;
  const at = prefix.lastIndexOf(opener) + opener.length;
  if (format.reasoning?.close.some((close) => prefix.includes(close, at))) return job;
  const hidden = job.separateReasoning === false && !closesThought(job.text, format.reasoning);
  return begun({ ...job, prefix: prefix.slice(0, hidden ? at - opener.length : at) }, prefix.slice(at), chunks);
}

function closesThought(text: string, reasoning: Reasoning | undefined): boolean {
  const first = (markers: readonly string[] = []): number =>
    Math.min(...markers.map((marker) => text.indexOf(marker)).map((at) => (at < 0 ? Infinity : at)));
  const close = first(reasoning?.close);
  return close < Infinity && first(reasoning?.endedBy) >= close;
}

function begun(job: ParseJob, beginning: string, chunks: readonly string[] | undefined): ParseJob {
  return { ...job, text: beginning + job.text, ...(chunks && { chunks: [beginning, ...chunks] }) };
}

/** Where the assistant's own text begins: behind the last role marker. */
function turnStart(prefix: string, format: Format): number {
  if (format.kind === "routed") return Math.max(0, prefix.indexOf(format.start));
  const own = new Set<string>([...(format.reasoning?.open ?? []), ...(format.reasoning?.close ?? [])]);
  let at = 0;
  for (const found of prefix.matchAll(/(?:<[^<>\s]*>|\[\/?INST\]|\]~b\]ai|\b(?:[Aa]ssistant|model)(?:\n|: ?))\n*/g)) {
    if (!own.has(found[0].trim())) at = found.index + found[0].length;
  }
  return at;
}

/** SGLang says beside the format that a text begins inside a thought, and what begins calls and so ends a thought. */
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

function boxed(value: unknown): unknown {
  return typeof value === "object" && value !== null && "Value" in value ? value.Value : value;
}

function withoutFence(text: string): string {
  return /^\s*```(?:json)?\s*\n([^]*?)\n?```\s*$/.exec(text)?.[1] ?? text;
}
