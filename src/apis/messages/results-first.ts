import { isObject } from "../../core/json.ts";
import { Pace } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";

type JsonBody = Readonly<Record<string, unknown>>;

/**
 * The client's body with the `tool_result` blocks of each message before its other blocks, for a Messages server, which refuses
 * another order. The same object where every message has that order already.
 */
export function* withResultsFirst(body: JsonBody): Steps<JsonBody> {
  const { messages } = body;
  if (!Array.isArray(messages)) return body;
  const ordered: unknown[] = [];
  const pace = new Pace();
  let changed = false;
  for (const message of messages as readonly unknown[]) {
    const inOrder = orderedMessage(message);
    changed ||= inOrder !== message;
    ordered.push(inOrder);
    if (pace.isOver()) yield;
  }
  return changed ? { ...body, messages: ordered } : body;
}

function orderedMessage(message: unknown): unknown {
  if (!isObject(message) || message["role"] !== "user" || !Array.isArray(message["content"])) return message;
  const content: readonly unknown[] = message["content"];
  const firstOther = content.findIndex((block) => !isResult(block));
  if (firstOther === -1 || !content.slice(firstOther).some(isResult)) return message;
  return { ...message, content: [...content.filter(isResult), ...content.filter((block) => !isResult(block))] };
}

function isResult(block: unknown): boolean {
  return isObject(block) && block["type"] === "tool_result";
}
