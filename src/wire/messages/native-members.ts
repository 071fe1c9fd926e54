import type { ExtraEvent } from "../../generation/event.ts";
import { isObject } from "../../generation/json.ts";
import type { JsonObject } from "../../generation/json.ts";

/**
 * Members of a message that only this API has a place for. A source that speaks it tells them as `extra` events with its dialect, place
 * "chunk", the latest of each name counting; a writer of it shows them.
 */
export interface NativeMembers {
  /** Beside the counts that every API has: `server_tool_use`, `inference_geo`, `cache_creation`, … */
  readonly usage: JsonObject;
  /** Where no neutral reason says it: `pause_turn`. */
  readonly stopReason?: string;
  readonly stopDetails?: unknown;
  readonly container?: unknown;
  readonly contextManagement?: unknown;
}

export const noNativeMembers: NativeMembers = { usage: {} };

/** `before` with what the event adds; `before` itself for an event that is not of this kind. */
export function withNativeMembers(before: NativeMembers, { place, dialect, value }: ExtraEvent): NativeMembers {
  if (place !== "chunk" || dialect !== "messages") return before;
  const { usage, stop_reason, stop_details, container, context_management } = value;
  return {
    ...before,
    ...(isObject(usage) && { usage: { ...before.usage, ...usage } }),
    ...(typeof stop_reason === "string" && { stopReason: stop_reason }),
    ...(stop_details !== undefined && { stopDetails: stop_details }),
    ...(container !== undefined && { container }),
    ...(context_management !== undefined && { contextManagement: context_management }),
  };
}
