import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { MessageEvent } from "./message-event.ts";

type Members = { [name: string]: unknown };

/** The whole message that these events, which are in order, tell piece by piece. */
export function assembledMessage(events: readonly MessageEvent[]): JsonObject {
  let message: Members = {};
  const content: Members[] = [];
  let input = "";
  for (const event of events) {
    const block = content.at(-1) ?? {};
    switch (event.type) {
      case "message_start":
        message = { ...event.message };
        break;
      case "content_block_start":
        content.push({ ...event.content_block });
        input = "";
        break;
      case "content_block_delta": {
        const { type: _, partial_json, citation, ...pieces } = event.delta;
        if (typeof partial_json === "string") input += partial_json;
        else if (citation !== undefined) block["citations"] = [...listOf(block["citations"]), citation];
        else for (const [name, piece] of Object.entries(pieces)) block[name] = joined(block[name], piece);
        break;
      }
      case "content_block_stop":
        if (input !== "") block["input"] = inputOf(input);
        break;
      case "message_delta": {
        const { usage, ...rest } = event.rest;
        const before = message["usage"];
        Object.assign(message, event.delta, rest);
        if (isObject(usage)) message["usage"] = { ...(isObject(before) && before), ...usage };
        break;
      }
      case "message_stop":
      case "ping":
    }
  }
  return { ...message, content };
}

function joined(before: unknown, piece: unknown): unknown {
  return typeof before === "string" && typeof piece === "string" ? before + piece : piece;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function inputOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Told below, under Anthropic's name for it.
  }
  return { INVALID_JSON: text };
}
