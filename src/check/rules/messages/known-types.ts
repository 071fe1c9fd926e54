/** What Anthropic's API sends. Source: the types of Anthropic's SDK 0.120.0; recordings of 2024 to 2026. */

export const eventTypes: ReadonlySet<string> = new Set([
  "message_start",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
  "ping",
  "error",
]);

export const stopReasons: ReadonlySet<unknown> = new Set([
  "end_turn",
  "max_tokens",
  "stop_sequence",
  "tool_use",
  "pause_turn",
  "compaction",
  "refusal",
  "model_context_window_exceeded",
]);

/** By status. Several statuses have more than one type. */
export const errorTypes: Readonly<Record<string, readonly number[]>> = {
  invalid_request_error: [400, 422],
  authentication_error: [401],
  billing_error: [402, 403],
  permission_error: [403],
  not_found_error: [404],
  request_too_large: [413],
  rate_limit_error: [429],
  api_error: [500, 501, 502],
  timeout_error: [408, 504],
  overloaded_error: [503, 529],
};

/** The deltas that a block may get, and the member that holds their text; a block of a type that is not here, any. */
export const deltaTypes: Readonly<Record<string, readonly string[]>> = {
  text: ["text_delta", "citations_delta"],
  thinking: ["thinking_delta", "signature_delta"],
  redacted_thinking: [],
  tool_use: ["input_json_delta"],
  server_tool_use: ["input_json_delta"],
  mcp_tool_use: ["input_json_delta"],
  compaction: ["compaction_delta"],
};

export const deltaMembers: Readonly<Record<string, string>> = {
  text_delta: "text",
  thinking_delta: "thinking",
  signature_delta: "signature",
  input_json_delta: "partial_json",
};

/** A block's type, the results of Anthropic's own tools among them. */
export function isKnownBlock(type: unknown): boolean {
  if (typeof type !== "string") return false;
  return Object.hasOwn(deltaTypes, type) || type === "container_upload" || type.endsWith("_tool_result");
}
