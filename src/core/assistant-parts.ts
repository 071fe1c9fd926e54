import type { AssistantMessage, AssistantPart, ToolCall } from "./message.ts";

/** The parts of an assistant's message, in order. */
export function assistantParts({ content }: AssistantMessage): readonly AssistantPart[] {
  if (content === null) return [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** The content of an assistant's message with these parts: a string for one plain text, null without parts. */
export function assistantContent(parts: readonly AssistantPart[]): AssistantMessage["content"] {
  const [first] = parts;
  if (first === undefined) return null;
  return parts.length === 1 && first.type === "text" && first.phase === undefined ? first.text : parts;
}

/** The calls of an assistant's message, in order. */
export function assistantCalls(message: AssistantMessage): readonly ToolCall[] {
  if (message.content === null || typeof message.content === "string") return none;
  return message.content.filter((part) => part.type === "tool-call");
}

/** The readable reasoning of an assistant's message, its parts joined; undefined without any. */
export function reasoningOf(message: AssistantMessage): string | undefined {
  const texts: string[] = [];
  for (const part of assistantParts(message)) {
    if (part.type !== "reasoning") continue;
    const { text, summary, signature, encrypted } = part;
    if (text === "" && summary) texts.push(summary.join("\n\n"));
    else if (text !== "" || (signature ?? encrypted) === undefined) texts.push(text);
  }
  return texts.length === 0 ? undefined : texts.join("\n\n");
}

const none: readonly ToolCall[] = [];
