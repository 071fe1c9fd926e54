import { isObject } from "../../core/json.ts";
import { Pace } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
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
export function* withKnownBlocks(messages: unknown, unknown: Set<string>): Steps<unknown> {
  if (!Array.isArray(messages) || messages.length > mostMessages) return messages;
  const shown: unknown[] = [];
  const pace = new Pace();
  for (const message of messages as unknown[]) {
    if (isObject(message)) shown.push({ ...message, content: yield* knownContent(message["content"], unknown, pace) });
    else shown.push(message);
    if (pace.isOver()) yield;
  }
  return shown;
}

function* knownContent(content: unknown, unknown: Set<string>, pace: Pace): Steps<unknown> {
  if (!Array.isArray(content) || content.length > mostParts) return content;
  const shown: unknown[] = [];
  for (const block of content as unknown[]) {
    if (!isObject(block) || typeof block["type"] !== "string") shown.push(block);
    else if (!known.has(block["type"])) {
      unknown.add(block["type"]);
      shown.push(nothing);
    } else if (block["type"] === "tool_result") {
      shown.push({ ...block, content: yield* knownContent(block["content"], unknown, pace) });
    } else shown.push(block);
    if (pace.isOver()) yield;
  }
  return shown;
}
