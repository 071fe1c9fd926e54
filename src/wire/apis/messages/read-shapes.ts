import type { Annotation, FinishEvent, Usage } from "../../core/events.ts";
import { isObject, nonEmpty, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { RepairLog } from "../tolerant/repairs.ts";
import { deltaTexts, extendedBlocks, stopReason } from "./schema.ts";

/* The objects of an upstream's message: each repaired to the shape of Anthropic's, then read into its neutral form. */

/** OpenAI's names of the counts, which some gateways send. */
const otherCounts: ReadonlyMap<string, string> = new Map([
  ["prompt_tokens", "input_tokens"],
  ["completion_tokens", "output_tokens"],
]);

export function repairedUsage(usage: JsonObject, repairs: RepairLog): JsonObject {
  const repaired: { [name: string]: unknown } = {};
  for (const [name, value] of Object.entries(usage)) {
    const isCount = name.endsWith("_tokens");
    if (isCount && (typeof value !== "number" || !(value >= 0))) {
      repairs.note("usage-value");
      continue;
    }
    const known = otherCounts.get(name);
    if (known !== undefined) repairs.note("usage-value");
    repaired[known ?? name] = value;
  }
  return repaired;
}

/** Returns `content` as a list of blocks. A string is one block. */
export function blockList(content: unknown): readonly unknown[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return Array.isArray(content) ? content : [];
}

/** Returns a block with a type and the members that its type requires. */
export function repairedBlock(raw: unknown, repairs: RepairLog): JsonObject {
  if (!isObject(raw)) {
    repairs.note("block-start");
    return { type: "text", text: typeof raw === "string" ? raw : "" };
  }
  const type = nonEmpty(raw["type"]) ?? impliedBlockType(raw);
  if (type !== raw["type"]) repairs.note("block-start");
  switch (type) {
    case "text":
      return { ...raw, type, text: textOf(raw["text"], repairs) };
    case "thinking":
      return { ...raw, type, thinking: textOf(raw["thinking"], repairs) };
    case "tool_use": {
      if (nonEmpty(raw["name"]) !== undefined) return { ...raw, type };
      repairs.note("nameless-call");
      const { input } = raw;
      return { type: "text", text: isObject(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : "" };
    }
    default:
      return { ...raw, type };
  }
}

function impliedBlockType(block: JsonObject): string {
  if (block["name"] !== undefined) return "tool_use";
  return block["thinking"] === undefined ? "text" : "thinking";
}

/** Returns a delta with a type and with its text as a string, or `null` if it contains nothing. */
export function repairedDelta(raw: unknown, repairs: RepairLog): JsonObject | null {
  if (!isObject(raw)) {
    repairs.note("delta-kind");
    return typeof raw === "string" && raw !== "" ? { type: "text_delta", text: raw } : null;
  }
  const type = nonEmpty(raw["type"]) ?? impliedDeltaType(raw);
  if (type === undefined) {
    repairs.note("delta-kind");
    return null;
  }
  const delta = type === raw["type"] ? raw : { ...raw, type };
  if (delta !== raw) repairs.note("delta-kind");
  const member = deltaTexts.get(type);
  const text = member === undefined ? "" : delta[member];
  if (member === undefined || typeof text === "string") return delta;
  if (type === "input_json_delta") {
    repairs.note("call-arguments");
    return { ...delta, [member]: text === undefined || text === null ? "" : JSON.stringify(text) };
  }
  return { ...delta, [member]: textOf(text, repairs) };
}

function impliedDeltaType(delta: JsonObject): string | undefined {
  const found = [...deltaTexts].find(([, member]) => delta[member] !== undefined);
  return found && String(found[0]);
}

function textOf(value: unknown, repairs: RepairLog): string {
  if (typeof value === "string") return value;
  if (value !== undefined) repairs.note("content");
  return scalarText(value);
}

/** True for blocks whose input is streamed: calls of any kind. */
export function takesInput(type: unknown): boolean {
  return extendedBlocks.get("input_json_delta")?.has(type) === true;
}

export interface BlockStart {
  /** The block as Anthropic starts it. */
  readonly start: JsonObject;
  /** A delta with the text that the start contained; `null` for none. */
  readonly delta: JsonObject | null;
  /** The input of a call that the start contained, as JSON text; "" for none. */
  readonly input: string;
}

/** Splits a block into its start and what should follow the start: some servers send whole blocks. */
export function splitBlock(block: JsonObject): BlockStart {
  const { type, text, thinking, input } = block;
  if (type === "text" && text !== "")
    return { start: { ...block, text: "" }, delta: { type: "text_delta", text }, input: "" };
  if (type === "thinking" && thinking !== "")
    return { start: { ...block, thinking: "" }, delta: { type: "thinking_delta", thinking }, input: "" };
  if (!takesInput(type)) return { start: block, delta: null, input: "" };
  return { start: { ...block, input: {} }, delta: null, input: inputText(input) };
}

function inputText(input: unknown): string {
  if (typeof input === "string") return input;
  if (input === undefined || input === null) return "";
  return isObject(input) && Object.keys(input).length === 0 ? "" : JSON.stringify(input);
}

const otherReasons: ReadonlyMap<unknown, string> = new Map([
  ["length", "max_tokens"],
  ["tool_calls", "tool_use"],
  ["function_call", "tool_use"],
  ["content_filter", "refusal"],
]);

/** Returns one of Anthropic's stop reasons. `calls`: the number of calls in the message. */
export function repairedStopReason(reason: unknown, calls: number, repairs: RepairLog): string {
  const own = stopReason.safeParse(reason);
  const known = own.success ? own.data : (otherReasons.get(reason) ?? "end_turn");
  const repaired = known === "end_turn" && calls > 0 ? "tool_use" : known;
  if (repaired !== reason) repairs.note("stop-reason");
  return repaired;
}

/** Stop reasons that no neutral reason expresses. */
export const nativeReasons: ReadonlySet<unknown> = new Set(["pause_turn", "compaction"]);

export function neutralFinish(reason: unknown, sequence: unknown): FinishEvent {
  const finish = { type: "finish", choice: 0 } as const;
  switch (reason) {
    case "tool_use":
      return { ...finish, reason: "tool-calls" };
    case "max_tokens":
      return { ...finish, reason: "length", limit: "max-tokens" };
    case "model_context_window_exceeded":
      return { ...finish, reason: "length", limit: "context" };
    case "refusal":
      return { ...finish, reason: "content-filter" };
    default:
      return { ...finish, reason: "stop", ...(typeof sequence === "string" && { stop: sequence }) };
  }
}

/** Reads the counts of a usage. The tokens of the prompt are in three counts, which do not overlap. Returns `null` if nothing is counted. */
export function neutralUsage(usage: JsonObject): Usage | null {
  const count = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);
  const input = count(usage["input_tokens"]);
  const output = count(usage["output_tokens"]);
  if (input === undefined && output === undefined) return null;
  const written = count(usage["cache_creation_input_tokens"]);
  const read = count(usage["cache_read_input_tokens"]);
  const details = usage["output_tokens_details"];
  const reasoning = isObject(details) ? count(details["thinking_tokens"]) : undefined;
  return {
    promptTokens: (input ?? 0) + (written ?? 0) + (read ?? 0),
    completionTokens: output ?? 0,
    ...((read !== undefined || written !== undefined) && {
      promptDetails: {
        ...(read !== undefined && { cached_tokens: read }),
        ...(written !== undefined && { cache_write_tokens: written }),
      },
    }),
    ...(reasoning !== undefined && { completionDetails: { reasoning_tokens: reasoning } }),
  };
}

export function neutralCitation(citation: JsonObject): Annotation {
  const url = nonEmpty(citation["url"]);
  const title = nonEmpty(citation["title"]) ?? nonEmpty(citation["document_title"]);
  const citedText = nonEmpty(citation["cited_text"]);
  return {
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(citedText !== undefined && { citedText }),
    native: { dialect: "messages", value: citation },
  };
}
