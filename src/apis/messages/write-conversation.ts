import { partsOf } from "../../core/assistant-parts.ts";
import { invalidRequest } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import type {
  AssistantMessage,
  AssistantPart,
  Content,
  ContentPart,
  FilePart,
  Message,
  ToolCall,
} from "../../core/message.ts";

type Members = { [name: string]: unknown };

/** A conversation as a request to this API has it. */
export interface WrittenConversation {
  /** Absent without instructions. */
  readonly system?: string | Members[];
  readonly messages: Members[];
}

/**
 * Messages of any API as this one has them: instructions come before the conversation; results of calls are the user's; messages of one role in a row are one. What it has no place for goes: summaries of thoughts, thoughts that its servers did not
 * sign, names.
 */
export function writeConversation(messages: readonly Message[]): WrittenConversation {
  const system: Members[] = [];
  const written: { role: "user" | "assistant"; content: Members[] }[] = [];
  for (const message of messages) {
    const content = blocksOf(message);
    if (message.role === "system" || message.role === "developer") {
      system.push(...content);
      continue;
    }
    const role = message.role === "assistant" ? "assistant" : "user";
    const last = written.at(-1);
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) written.push({ role, content });
  }
  const instructions = plain(system);
  return {
    ...(instructions.length > 0 && { system: instructions }),
    messages: written.map(({ role, content }) => ({ role, content: plain(content) })),
  };
}

/** One text as a string. */
function plain(blocks: Members[]): string | Members[] {
  const [first] = blocks;
  return blocks.length === 1 && first?.["type"] === "text" ? String(first["text"]) : blocks;
}

function blocksOf(message: Message): Members[] {
  switch (message.role) {
    case "system":
    case "developer":
    case "user":
      return contentBlocks(message.content);
    case "assistant":
      return saidBlocks(message);
    case "tool": {
      const { content, toolCallId, isError } = message;
      const shown = typeof content === "string" ? content : contentBlocks(content);
      return [
        {
          type: "tool_result",
          tool_use_id: callId(toolCallId),
          content: shown,
          ...(isError === true && { is_error: true }),
        },
      ];
    }
  }
}

/** Empty texts are refused by Anthropic. */
function contentBlocks(content: Content): Members[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return content.flatMap((part) => (part.type === "text" && part.text === "" ? [] : [writePart(part)]));
}

function writePart(part: ContentPart): Members {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "refusal":
      return { type: "text", text: part.refusal };
    case "image":
      return { type: "image", source: sourceOf(part.url) };
    case "file":
      return { type: "document", source: documentSource(part), ...(part.name !== undefined && { title: part.name }) };
    case "audio":
      throw invalidRequest("The model's server takes no audio.", null, "unsupported_value");
  }
}

function documentSource({ text, data, url, id }: FilePart): Members {
  if (text !== undefined) return { type: "text", media_type: "text/plain", data: text };
  if (data !== undefined) return sourceOf(data.startsWith("data:") ? data : `data:application/pdf;base64,${data}`);
  return url === undefined ? { type: "file", file_id: id ?? "" } : { type: "url", url };
}

/** A data URL as its bytes, any other as itself. */
function sourceOf(url: string): Members {
  const [, type, data] = /^data:([^;,]*)(?:;[^,]*)?,(.*)$/s.exec(url) ?? [];
  return data === undefined ? { type: "url", url } : { type: "base64", media_type: type, data };
}

function saidBlocks(message: AssistantMessage): Members[] {
  return partsOf(message).flatMap((part): Members[] => {
    const block = saidBlock(part);
    return block ? [block] : [];
  });
}

function saidBlock(part: AssistantPart): Members | undefined {
  switch (part.type) {
    case "text":
      return part.text === "" ? undefined : { type: "text", text: part.text };
    case "refusal":
      return { type: "text", text: part.refusal };
    case "image":
      return undefined;
    case "reasoning":
      // A thought with an item's id is sealed by another API.
      if (part.signature !== undefined) return { type: "thinking", thinking: part.text, signature: part.signature };
      return part.encrypted !== undefined && part.id === undefined && part.text === ""
        ? { type: "redacted_thinking", data: part.encrypted }
        : undefined;
    case "tool-call":
      return { type: "tool_use", id: callId(part.id), name: part.name, input: inputOf(part) };
  }
}

/** Ids of calls are made of letters, digits, `_` and `-`; those of other APIs need not be. */
function callId(id: string): string {
  return id.replace(/[^a-zA-Z0-9_-]/g, "_");
}

function inputOf({ arguments: text, kind }: ToolCall): unknown {
  if (kind === "custom") return { input: text };
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Told below, under Anthropic's name for it.
  }
  return text.trim() === "" ? {} : { INVALID_JSON: text };
}
