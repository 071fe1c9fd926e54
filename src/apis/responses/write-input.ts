import { partsOf } from "../../core/assistant-parts.ts";
import type { AssistantPart, Content, ContentPart, Message, ToolCall } from "../../core/message.ts";
import { nameWithin } from "../../core/qualified-name.ts";

type Members = { [name: string]: unknown };

/**
 * A conversation of any API as items. What has no place there goes: names of speakers, whether a tool failed, and thoughts that the API's
 * own server has not sealed, which it would refuse.
 */
export function writeInput(messages: readonly Message[]): Members[] {
  const items: Members[] = [];
  const custom = new Set<string>();
  for (const message of messages) {
    switch (message.role) {
      case "system":
      case "developer":
      case "user":
        items.push({ role: message.role, content: contentOf(message.content) });
        break;
      case "assistant":
        for (const part of partsOf(message)) {
          if (part.type === "tool-call" && part.kind === "custom") custom.add(part.id);
          const item = itemOf(part);
          if (item) items.push(item);
        }
        break;
      case "tool": {
        const type = custom.has(message.toolCallId) ? "custom_tool_call_output" : "function_call_output";
        items.push({ type, call_id: message.toolCallId, output: contentOf(message.content) });
      }
    }
  }
  return items;
}

function itemOf(part: AssistantPart): Members | undefined {
  switch (part.type) {
    case "text": {
      const phase = part.phase !== undefined && { phase: part.phase };
      return { role: "assistant", content: part.text, ...phase };
    }
    case "refusal":
      return { type: "message", role: "assistant", content: [{ type: "refusal", refusal: part.refusal }] };
    case "image":
      return undefined;
    case "reasoning": {
      const { id, summary = [], encrypted } = part;
      if (encrypted === undefined) return undefined;
      return {
        type: "reasoning",
        ...(id !== undefined && { id }),
        summary: summary.map((text) => ({ type: "summary_text", text })),
        encrypted_content: encrypted,
      };
    }
    case "tool-call":
      return callOf(part);
  }
}

function callOf({ id, name, arguments: text, kind, namespace }: ToolCall): Members {
  const group = namespace !== undefined && { namespace };
  const called = { call_id: id, name: namespace === undefined ? name : nameWithin(namespace, name), ...group };
  return kind === "custom"
    ? { type: "custom_tool_call", ...called, input: text }
    : { type: "function_call", ...called, arguments: text };
}

function contentOf(content: Content): string | Members[] {
  return typeof content === "string" ? content : content.map(partOf);
}

function partOf(part: ContentPart): Members {
  switch (part.type) {
    case "text":
      return { type: "input_text", text: part.text };
    case "refusal":
      return { type: "input_text", text: part.refusal };
    case "image":
      return { type: "input_image", image_url: part.url, detail: part.detail ?? "auto" };
    case "audio":
      return { type: "input_audio", input_audio: { data: part.data, format: part.format } };
    case "file":
      if (part.text !== undefined) return { type: "input_text", text: part.text };
      return {
        type: "input_file",
        ...(part.name !== undefined && { filename: part.name }),
        ...(part.data !== undefined && { file_data: part.data }),
        ...(part.url !== undefined && { file_url: part.url }),
        ...(part.id !== undefined && { file_id: part.id }),
      };
  }
}
