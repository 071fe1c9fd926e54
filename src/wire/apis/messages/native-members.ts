import * as z from "zod";
import type { DialectJson, ExtraEvent } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { membersOf, unwrapped } from "../members.ts";
import { directCaller, message, messageUsage } from "./schema.ts";

/**
 * Members of a message that no generation event has. An engine whose source speaks this API sends them as `extra` events of the dialect
 * "messages" with place "chunk"; the latest value of each name counts. The writers put them back into the message.
 */
export interface NativeMembers {
  /** Members of the usage other than counts: `server_tool_use`, `inference_geo`, … */
  readonly usage: JsonObject;
  /** A stop reason that no neutral reason expresses, such as `pause_turn`. */
  readonly stopReason?: string;
  readonly stopDetails?: unknown;
  /** Members of the message itself. */
  readonly message: JsonObject;
}

export const noNativeMembers: NativeMembers = { usage: {}, message: {} };

/** Returns the members of `value` that messages have in some cases only: `container`, `context_management`, … */
export function nativeMessage(value: JsonObject): JsonObject {
  return Object.fromEntries(
    membersOf(message).flatMap(({ name, always }) =>
      always || value[name] === undefined ? [] : [[name, value[name]]],
    ),
  );
}

/** Returns the members of a `tool_use` block that no neutral call has, unless they only say that the model called the tool itself. */
export function nativeCall({ caller, toolset_name }: JsonObject): DialectJson | undefined {
  const isDirect = !isObject(caller) || caller["type"] === directCaller.type;
  if (isDirect && typeof toolset_name !== "string") return undefined;
  return {
    dialect: "messages",
    value: { ...(!isDirect && { caller }), ...(toolset_name !== undefined && { toolset_name }) },
  };
}

/** The members of usage that no neutral count expresses. */
const notCounted: ReadonlySet<string> = new Set(
  membersOf(messageUsage).flatMap(({ name, schema }) => (unwrapped(schema) instanceof z.ZodNumber ? [] : [name])),
);

/** Returns the members of `value`, a usage, that no neutral count expresses. */
export function nativeUsage(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([name]) => notCounted.has(name)));
}

/** Returns `before` with what the event adds, or `before` itself for an event of another kind. */
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
