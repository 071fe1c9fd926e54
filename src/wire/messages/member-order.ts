import { isObject } from "../../generation/json.ts";
import type { JsonObject } from "../../generation/json.ts";

/** What an object of a message is, by which its members are ordered. */
export type ObjectKind =
  | "message"
  | "olderMessage"
  | "usage"
  | "iteration"
  | "cacheCreation"
  | "serverTools"
  | "block"
  | "delta"
  | "citation"
  | "ending"
  | "stopDetails"
  | "container"
  | "event"
  | "error"
  | "errorDetails";

/** The members of each object as Anthropic writes them. Source: 400 recorded streams and 586 recorded bodies of 2024 to 2026. */
const orders: Readonly<Record<ObjectKind, readonly string[]>> = {
  /** Since 2025-10-30. */
  message: [
    "model",
    "id",
    "type",
    "role",
    "content",
    "container",
    "stop_reason",
    "stop_sequence",
    "stop_details",
    "usage",
    "context_management",
  ],
  olderMessage: ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"],
  usage: [
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cache_creation",
    "output_tokens",
    "output_tokens_details",
    "service_tier",
    "inference_geo",
    "server_tool_use",
    "iterations",
  ],
  iteration: [
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "type",
  ],
  cacheCreation: ["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"],
  serverTools: ["web_search_requests", "web_fetch_requests"],
  block: [
    "citations",
    "type",
    "tool_use_id",
    "is_error",
    "id",
    "name",
    "input",
    "text",
    "thinking",
    "signature",
    "data",
    "content",
    "caller",
    "server_name",
  ],
  delta: ["type", "text", "thinking", "estimated_tokens", "signature", "partial_json", "citation", "content"],
  citation: [
    "type",
    "cited_text",
    "source",
    "url",
    "document_index",
    "document_title",
    "title",
    "search_result_index",
    "start_char_index",
    "end_char_index",
    "start_page_number",
    "end_page_number",
    "start_block_index",
    "end_block_index",
    "encrypted_index",
    "file_id",
  ],
  ending: ["stop_reason", "stop_sequence", "stop_details", "container"],
  stopDetails: ["type", "category", "explanation"],
  container: ["id", "expires_at"],
  event: ["type", "index", "message", "content_block", "delta", "usage", "context_management"],
  error: ["type", "error", "request_id"],
  errorDetails: ["type", "message"],
};

/** Which members hold objects of a kind, and of which. */
const inside: Partial<Readonly<Record<ObjectKind, Readonly<Record<string, ObjectKind>>>>> = {
  message: { content: "block", container: "container", stop_details: "stopDetails", usage: "usage" },
  olderMessage: { content: "block", usage: "usage" },
  usage: { cache_creation: "cacheCreation", server_tool_use: "serverTools", iterations: "iteration" },
  iteration: { cache_creation: "cacheCreation" },
  block: { citations: "citation" },
  delta: { citation: "citation" },
  ending: { stop_details: "stopDetails", container: "container" },
  event: { usage: "usage", content_block: "block" },
  error: { error: "errorDetails" },
};

/** `value` with its members in Anthropic's order, those that nobody knows behind them; a list, each of its objects. */
export function inOrder(value: unknown, kind: ObjectKind): unknown {
  if (Array.isArray(value)) return value.map((item) => inOrder(item, kind));
  return isObject(value) ? orderedObject(value, kind) : value;
}

function orderedObject(value: JsonObject, kind: ObjectKind): JsonObject {
  const kinds = inside[kind] ?? {};
  const names: ReadonlySet<string> = new Set([...orders[kind], ...Object.keys(value)]);
  const ordered: { [name: string]: unknown } = {};
  for (const name of names) {
    if (!Object.hasOwn(value, name)) continue;
    const known = kinds[name];
    ordered[name] = known === undefined ? value[name] : inOrder(value[name], known);
  }
  return ordered;
}
