import {
  assistantCalls,
  type AssistantMessage,
  assistantParts,
  type Content,
  type ContentPart,
  type Message,
  reasoningOf,
  type Tool,
  type ToolCall,
  type ToolChoice,
} from "../../core/message.ts";
import type { JsonValue } from "../json-text.ts";
import type { RequestBody } from "../adapt/server-profile.ts";

type Members = { [name: string]: unknown };

/**
 * Writes messages in the form of a chat request. `legacy`: calls as `function_call`, and their results with role "function". What chat
 * cannot express is lost: signatures and summaries of reasoning, the order of texts and calls, whether a tool failed.
 */
export function writeChatMessages(messages: readonly Message[], legacy = false): Members[] {
  return messages.map((message) => writeMessage(message, legacy));
}

function writeMessage(message: Message, legacy: boolean): Members {
  switch (message.role) {
    case "system":
    case "developer":
    case "user":
      return { role: message.role, content: writeContent(message.content), ...named(message.name) };
    case "assistant":
      return writeAssistant(message, legacy);
    case "tool": {
      const content = writeContent(message.content);
      if (legacy) return { role: "function", name: message.name ?? message.toolCallId, content };
      return { role: "tool", tool_call_id: message.toolCallId, content };
    }
  }
}

function writeAssistant(message: AssistantMessage, legacy: boolean): Members {
  const parts = assistantParts(message);
  const texts = parts.filter((part) => part.type === "text");
  const refusals = parts.filter((part) => part.type === "refusal").map(({ refusal }) => refusal);
  const calls = assistantCalls(message);
  const reasoning = reasoningOf(message);
  const [only] = texts;
  return {
    role: "assistant",
    content:
      only === undefined ? null : texts.length === 1 ? only.text : texts.map(({ text }) => ({ type: "text", text })),
    ...named(message.name),
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(refusals.length > 0 && { refusal: refusals.join("") }),
    ...writeCalls(calls, legacy),
  };
}

function named(name: string | undefined): Members {
  return name === undefined ? {} : { name };
}

/** Writes the calls of a message as `tool_calls`, or the first one as the legacy `function_call`. Empty without calls. */
export function writeCalls(calls: readonly ToolCall[], legacy: boolean): { [name: string]: JsonValue } {
  const [first] = calls;
  if (!first) return {};
  if (legacy) return { function_call: { name: first.name, arguments: first.arguments } };
  return {
    tool_calls: calls.map(({ id, kind, name, arguments: text }) =>
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
      // Chat accepts the bytes of a file or its id; a text file is sent as text.
      if (part.text !== undefined) return { type: "text", text: part.text };
      return {
        type: "file",
        file: {
          ...(part.name !== undefined && { filename: part.name }),
          ...((part.data ?? part.url) !== undefined && { file_data: part.data ?? part.url }),
          ...(part.id !== undefined && { file_id: part.id }),
        },
      };
  }
}

/** Writes tools in the form of a chat request. */
export function writeChatTools(tools: readonly Tool[]): RequestBody[] {
  return tools.map((tool) =>
    tool.kind === "custom"
      ? { type: "custom", custom: { name: tool.name, ...described(tool), ...inputFormat(tool) } }
      : { type: "function", function: writeFunction(tool) },
  );
}

function inputFormat({ inputGrammar }: Pick<Tool, "inputGrammar">): RequestBody {
  return inputGrammar === undefined ? {} : { format: { type: "grammar", grammar: inputGrammar } };
}

/** Writes a tool as an entry of the legacy `functions`, which is also the member `function` of a tool. */
export function writeFunction(tool: Tool): RequestBody {
  const { parameters, strict } = tool;
  return {
    name: tool.name,
    ...described(tool),
    ...(parameters !== undefined && { parameters }),
    ...(strict !== undefined && { strict }),
  };
}

function described({ description }: Pick<Tool, "description">): RequestBody {
  return description === undefined ? {} : { description };
}

/** Writes `tool_choice`. `tools`: the tools of the request; a choice of a custom tool has another form than a choice of a function. */
export function writeToolChoice(choice: ToolChoice, tools: readonly Tool[]): unknown {
  const named = (name: string): RequestBody => {
    const kind = tools.find((tool) => tool.name === name)?.kind ?? "function";
    return { type: kind, [kind]: { name } };
  };
  switch (choice.type) {
    case "none":
    case "auto":
    case "required":
      return choice.type;
    case "named":
      return named(choice.name);
    case "allowed":
      return { type: "allowed_tools", allowed_tools: { mode: choice.mode, tools: choice.names.map(named) } };
  }
}

/** Writes `function_call`: "none", "auto", or a function by name. The legacy form has no "required", which becomes "auto". */
export function writeFunctionChoice(choice: ToolChoice): unknown {
  if (choice.type === "named") return { name: choice.name };
  return choice.type === "none" ? "none" : "auto";
}
