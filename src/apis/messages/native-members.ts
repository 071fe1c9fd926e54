import type { ExtraEvent } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

/**
 * Members of a message that no generation event has. An engine whose source speaks this API sends them as `extra` events of the dialect
 * "messages" with place "chunk"; the latest value of each name counts. The writers put them back into the message.
 */
export interface NativeMembers {
  /** Beside the counts that every API has: `server_tool_use`, `inference_geo`, `cache_creation`, … */
  readonly usage: JsonObject;
  /** Where no neutral reason says it: `pause_turn`. */
  readonly stopReason?: string;
  readonly stopDetails?: unknown;
  /** Members of the message itself, as they came. */
  readonly message: JsonObject;
}

export const noNativeMembers: NativeMembers = { usage: {}, message: {} };

/** `before` with what the event adds; `before` itself for an event that is not of this kind. */
export function withNativeMembers(before: NativeMembers, { place, dialect, value }: ExtraEvent): NativeMembers {
  if (place !== "chunk" || dialect !== "messages") return before;
  const { usage, stop_reason, stop_details } = value;
  return {
    ...before,
    ...(isObject(usage) && { usage: { ...before.usage, ...usage } }),
    ...(typeof stop_reason === "string" && { stopReason: stop_reason }),
    ...(stop_details !== undefined && { stopDetails: stop_details }),
    message: { ...before.message, ...nativeMessage(value) },
  };
}

/** Returns the members of `value` that only a message of this API has. */
export function nativeMessage(value: JsonObject): JsonObject {
  const names = ["container", "input_transformations", "diagnostics", "context_management"] as const;
  return Object.fromEntries(names.flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]])));
}
