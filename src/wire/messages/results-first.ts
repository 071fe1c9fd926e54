import { isObject } from "../../generation/json.ts";

type JsonBody = Readonly<Record<string, unknown>>;

/**
 * The client's body with the `tool_result` blocks of each message before its other blocks, for a Messages server, which refuses
 * another order. The same object where every message has that order already.
 */
export function withResultsFirst(body: JsonBody): JsonBody {
  const { messages } = body;
  if (!Array.isArray(messages)) return body;
  const ordered = (messages as readonly unknown[]).map(orderedMessage);
  return ordered.every((message, index) => message === messages[index]) ? body : { ...body, messages: ordered };
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
