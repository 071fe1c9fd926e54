import { stopReason } from "./schema.ts";
import { isObject, nonEmpty, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { RepairLog } from "../tolerant/repairs.ts";

/** A message with its usage under Anthropic's names. */
export function mendMessage(message: JsonObject, repairs: RepairLog): JsonObject {
  const { usage } = message;
  return isObject(usage) ? { ...message, usage: mendUsage(usage, repairs) } : message;
}

/** OpenAI's names for the counts, which gateways leave in place. */
const otherNames: ReadonlyMap<string, string> = new Map(
  Object.entries({
    prompt_tokens: "input_tokens",
    completion_tokens: "output_tokens",
  }),
);

export function mendUsage(usage: JsonObject, repairs: RepairLog): JsonObject {
  const mended: { [name: string]: unknown } = {};
  for (const [name, value] of Object.entries(usage)) {
    const isCount = name.endsWith("_tokens");
    if (isCount && (typeof value !== "number" || !(value >= 0))) {
      repairs.note("usage-value");
      continue;
    }
    const known = otherNames.get(name);
    if (known !== undefined) repairs.note("usage-value");
    mended[known ?? name] = value;
  }
  return mended;
}

/** A block with a type, and with what its type needs. */
export function mendBlock(raw: unknown, repairs: RepairLog): JsonObject {
  if (!isObject(raw)) {
    repairs.note("block-start");
    return { type: "text", text: typeof raw === "string" ? raw : "" };
  }
  const type = nonEmpty(raw["type"]) ?? guessedType(raw);
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

function guessedType(block: JsonObject): string {
  if (block["name"] !== undefined) return "tool_use";
  return block["thinking"] === undefined ? "text" : "thinking";
}

/** A delta with a type, and its piece as a text; null where it holds nothing. */
export function mendDelta(raw: unknown, repairs: RepairLog): JsonObject | null {
  if (!isObject(raw)) {
    repairs.note("delta-kind");
    return typeof raw === "string" && raw !== "" ? { type: "text_delta", text: raw } : null;
  }
  const type = nonEmpty(raw["type"]) ?? guessedDelta(raw);
  if (type === undefined) {
    repairs.note("delta-kind");
    return null;
  }
  const delta = type === raw["type"] ? raw : { ...raw, type };
  if (delta !== raw) repairs.note("delta-kind");
  const member = pieces[type];
  const piece = member === undefined ? "" : delta[member];
  if (member === undefined || typeof piece === "string") return delta;
  if (type === "input_json_delta") {
    repairs.note("call-arguments");
    return { ...delta, partial_json: piece === undefined || piece === null ? "" : JSON.stringify(piece) };
  }
  return { ...delta, [member]: textOf(piece, repairs) };
}

const pieces: Readonly<Record<string, string | undefined>> = {
  text_delta: "text",
  thinking_delta: "thinking",
  input_json_delta: "partial_json",
  signature_delta: "signature",
};

function guessedDelta(delta: JsonObject): string | undefined {
  return Object.keys(pieces).find((type) => delta[pieces[type] ?? ""] !== undefined);
}

function textOf(value: unknown, repairs: RepairLog): string {
  if (typeof value === "string") return value;
  if (value !== undefined) repairs.note("content");
  return scalarText(value);
}

export interface BlockPieces {
  /** The block as it begins. */
  readonly shown: JsonObject;
  /** A delta with what stood in the beginning, though it should have come after; null for nothing. */
  readonly text: JsonObject | null;
  /** A call's input that stood there, as JSON text; "" for none. */
  readonly input: string;
}

/** What a block's start holds beyond a start: some servers send whole blocks. */
export function pieceOf(block: JsonObject): BlockPieces {
  const { type, text, thinking, input } = block;
  if (type === "text" && text !== "")
    return { shown: { ...block, text: "" }, text: { type: "text_delta", text }, input: "" };
  if (type === "thinking" && thinking !== "")
    return { shown: { ...block, thinking: "" }, text: { type: "thinking_delta", thinking }, input: "" };
  if (type !== "tool_use" && type !== "server_tool_use" && type !== "mcp_tool_use")
    return { shown: block, text: null, input: "" };
  return { shown: { ...block, input: {} }, text: null, input: inputText(input) };
}

function inputText(input: unknown): string {
  if (typeof input === "string") return input;
  if (input === undefined || input === null) return "";
  return isObject(input) && Object.keys(input).length === 0 ? "" : JSON.stringify(input);
}

const otherReasons: ReadonlyMap<unknown, "max_tokens" | "tool_use" | "refusal"> = new Map([
  ["length", "max_tokens"],
  ["tool_calls", "tool_use"],
  ["function_call", "tool_use"],
  ["content_filter", "refusal"],
] as const);

/** A reason of Anthropic's; `calls`: how many tools the message uses. */
export function mendStopReason(reason: unknown, calls: number, repairs: RepairLog): string {
  const own = stopReason.safeParse(reason);
  const known = own.success ? own.data : (otherReasons.get(reason) ?? "end_turn");
  const mended = known === "end_turn" && calls > 0 ? "tool_use" : known;
  if (mended !== reason) repairs.note("stop-reason");
  return mended;
}
