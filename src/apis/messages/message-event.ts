import type { JsonObject } from "../../core/json.ts";

/**
 * The events of a streamed message, as they should come: one start, blocks one after another (start, deltas, stop) with indices 0, 1, 2,
 * …, one delta of the message, its stop. Source: https://platform.claude.com/docs/en/build-with-claude/streaming.
 */
export type MessageEvent =
  | { readonly type: "message_start"; readonly message: JsonObject }
  | { readonly type: "content_block_start"; readonly index: number; readonly content_block: JsonObject }
  | { readonly type: "content_block_delta"; readonly index: number; readonly delta: JsonObject }
  | { readonly type: "content_block_stop"; readonly index: number }
  /** `rest`: what stands beside the delta: `usage`, `context_management`. */
  | { readonly type: "message_delta"; readonly delta: JsonObject; readonly rest: JsonObject }
  | { readonly type: "message_stop" }
  | { readonly type: "ping" };
