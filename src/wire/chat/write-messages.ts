import type { Content, ContentPart, Message, ToolCall } from "../../generation/message.ts";

type Members = { [name: string]: unknown };

/** Messages as a chat request has them. `legacy`: calls as `function_call`, their results with role "function". */
export function writeMessages(messages: readonly Message[], legacy = false): Members[] {
  return messages.map((message) => writeMessage(message, legacy));
}

function writeMessage(message: Message, legacy: boolean): Members {
  switch (message.role) {
    case "system":
    case "developer":
    case "user":
      return { role: message.role, content: writeContent(message.content), ...named(message.name) };
    case "assistant": {
      const { content, reasoning, refusal, toolCalls = [] } = message;
      return {
        role: "assistant",
        content: content === null ? null : writeContent(content),
        ...named(message.name),
        ...(reasoning !== undefined && { reasoning_content: reasoning }),
        ...(refusal !== undefined && { refusal }),
        ...(toolCalls.length > 0 && writeCalls(toolCalls, legacy)),
      };
    }
    case "tool": {
      const content = writeContent(message.content);
      if (legacy) return { role: "function", name: message.name ?? message.toolCallId, content };
      return { role: "tool", tool_call_id: message.toolCallId, content };
    }
  }
}

function named(name: string | undefined): Members {
  return name === undefined ? {} : { name };
}

function writeCalls(calls: readonly ToolCall[], legacy: boolean): Members {
  const [first] = calls;
  if (legacy && first) return { function_call: { name: first.name, arguments: first.arguments } };
  return {
    tool_calls: calls.map(({ id, name, arguments: text, kind }) =>
      kind === "custom"
        ? { id, type: "custom", custom: { name, input: text } }
        : { id, type: "function", function: { name, arguments: text } },
    ),
  };
}

function writeContent(content: Content): string | Members[] {
  return typeof content === "string" ? content : content.map(writePart);
}

function writePart(part: ContentPart): Members {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "refusal":
      return { type: "refusal", refusal: part.refusal };
    case "image":
      return {
        type: "image_url",
        image_url: { url: part.url, ...(part.detail !== undefined && { detail: part.detail }) },
      };
    case "audio":
      return { type: "input_audio", input_audio: { data: part.data, format: part.format } };
    case "file":
      return { type: "file", file: part.file };
  }
}
