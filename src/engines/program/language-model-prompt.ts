import { argumentsOfInput } from "../../core/custom-tool.ts";
import { unreadablePart } from "../../core/unreadable-part.ts";
import type { ProgramMessage } from "./program.ts";

/**
 * OpenAI's messages as the AI SDK's prompt. Source: the SDK's `LanguageModelV3Prompt`; v2 has the same form. Throws `FailureError`
 * with the path of a part that the form cannot hold.
 */
export function languageModelPrompt(messages: readonly ProgramMessage[]): unknown[] {
  const names = new Map<unknown, unknown>();
  return messages.map((message, index) => {
    const path = `messages[${index}]`;
    switch (message.role) {
      case "system":
      case "developer":
        return { role: "system", content: joinedText(message.content) };
      case "user":
        return { role: "user", content: userParts(message.content, path) };
      case "assistant": {
        const calls = assistantCalls(message);
        for (const call of calls) names.set(call.toolCallId, call.toolName);
        return { role: "assistant", content: [...assistantText(message), ...calls] };
      }
      default:
        return { role: "tool", content: [toolResult(message, names)] };
    }
  });
}

function userParts(content: unknown, path: string): unknown[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return partsOf(content).map((part, index) => {
    const image = part.image_url as { url?: unknown } | undefined;
    if (part.type === "text") return { type: "text", text: part.text };
    if (part.type === "image_url" && typeof image?.url === "string") return imagePart(image.url);
    throw unreadablePart(String(part.type), `${path}.content[${index}]`, "text and images");
  });
}

function imagePart(url: string): unknown {
  const data = /^data:([^;,]+);base64,(.*)$/s.exec(url);
  if (data) return { type: "file", mediaType: data[1], data: data[2] };
  return { type: "file", mediaType: "image/*", data: new URL(url) };
}

function assistantText(message: ProgramMessage): unknown[] {
  const parts: unknown[] = [];
  const reasoning = message.reasoning_content ?? message.reasoning;
  if (typeof reasoning === "string" && reasoning !== "") parts.push({ type: "reasoning", text: reasoning });
  const text = joinedText(message.content);
  if (text !== "") parts.push({ type: "text", text });
  return parts;
}

function assistantCalls(message: ProgramMessage): { toolCallId: unknown; toolName: unknown }[] {
  if (!Array.isArray(message.tool_calls)) return [];
  return message.tool_calls.map((call: ChatCall) => ({
    type: "tool-call",
    toolCallId: call.id,
    ...("custom" in call
      ? { toolName: call.custom.name, input: argumentsOfInput(call.custom.input) }
      : { toolName: call.function.name, input: jsonOr(call.function.arguments) }),
  }));
}

/** As the program's input has it. The SDK knows functions alone, so the input of a custom tool becomes an argument. */
type ChatCall = { readonly id: string } & (
  | { readonly function: { readonly name: string; readonly arguments: string } }
  | { readonly custom: { readonly name: string; readonly input: string } }
);

function toolResult(message: ProgramMessage, names: ReadonlyMap<unknown, unknown>): unknown {
  const id = message.tool_call_id ?? message.name;
  return {
    type: "tool-result",
    toolCallId: id,
    toolName: names.get(id) ?? message.name ?? "",
    output: { type: "text", value: joinedText(message.content) },
  };
}

function joinedText(content: unknown): string {
  if (typeof content === "string") return content;
  return partsOf(content)
    .map((part) => (typeof part.text === "string" ? part.text : typeof part.refusal === "string" ? part.refusal : ""))
    .join("");
}

function partsOf(content: unknown): Record<string, unknown>[] {
  return Array.isArray(content) ? (content as Record<string, unknown>[]) : [];
}

/** A call whose arguments are not JSON is passed on as text, not refused. */
function jsonOr(text: unknown): unknown {
  if (typeof text !== "string") return text ?? {};
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch {
    return text;
  }
}
