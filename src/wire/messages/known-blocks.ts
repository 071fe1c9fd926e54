import { isObject } from "../../generation/json.ts";
import { mostMessages, mostParts } from "../request/size-limits.ts";
import { serverBlocks } from "./request-shapes.ts";

const known: ReadonlySet<unknown> = new Set([
  "text",
  "image",
  "document",
  "search_result",
  "thinking",
  "redacted_thinking",
  "tool_use",
  "tool_result",
  "tool_reference",
  "tool_addition",
  "tool_removal",
  "compaction",
  ...serverBlocks,
]);

const nothing = { type: "text", text: "" };

/**
 * Messages with an empty text in place of each block whose type nobody here knows: profile `lean` serves clients that are newer than it.
 * Of any shape, as they came; what is wrong with them is for the shapes to say. `unknown` gets the types.
 */
export function withKnownBlocks(messages: unknown, unknown: Set<string>): unknown {
  if (!Array.isArray(messages) || messages.length > mostMessages) return messages;
  return messages.map((message: unknown) =>
    isObject(message) ? { ...message, content: knownContent(message["content"], unknown) } : message,
  );
}

function knownContent(content: unknown, unknown: Set<string>): unknown {
  if (!Array.isArray(content) || content.length > mostParts) return content;
  return content.map((block: unknown): unknown => {
    if (!isObject(block) || typeof block["type"] !== "string") return block;
    if (!known.has(block["type"])) {
      unknown.add(block["type"]);
      return nothing;
    }
    return block["type"] === "tool_result" ? { ...block, content: knownContent(block["content"], unknown) } : block;
  });
}
