import {
  assistantCalls,
  type AssistantMessage,
  assistantParts,
  type CacheablePart,
  type Content,
  type ContentPart,
  type Message,
  reasoningOf,
  type RefusalPart,
  type Tool,
  type ToolCall,
  type ToolChoice,
} from "../../core/message.ts";
import { cacheControl } from "../adapt/cache-marks.ts";
import type { JsonValue } from "../json-text.ts";
import type { RequestBody } from "../adapt/server-profile.ts";
import { callStateMembers } from "../tolerant/call-state.ts";

type Members = { [name: string]: unknown };

interface MessagesForm {
  /** Calls as `function_call`, and their results with role "function". */
  readonly legacy?: boolean;
  /** The states of the messages are written, too. */
  readonly states?: boolean;
  /**
   * The marks of the prompt cache are written, except those of calls. Each text is then in a list, so that it has the same form when its mark
   * has moved on.
   */
  readonly marks?: boolean;
}

/**
 * Writes messages in the form of a chat request. What chat cannot express is lost: summaries of reasoning, the order of texts and calls. That a
 * tool failed is said in its result.
 */
export function writeChatMessages(messages: readonly Message[], form: MessagesForm = {}): Members[] {
  return messages.map((message) => writeMessage(message, form));
}

function writeMessage(message: Message, form: MessagesForm): Members {
  const { legacy = false, marks = false } = form;
  switch (message.role) {
    case "system":
    case "developer":
    case "user":
      return { role: message.role, content: writeContent(message.content, marks), ...named(message.name) };
    case "assistant":
      return writeAssistant(message, form);
    case "tool": {
      const content = writeContent(message.isError === true ? asError(message.content) : message.content, marks);
      if (marks && typeof content !== "string") Object.assign(content.at(-1) ?? {}, mark(message));
      if (legacy) return { role: "function", name: message.name ?? message.toolCallId, content };
      return { role: "tool", tool_call_id: message.toolCallId, content };
    }
  }
}

function writeAssistant(message: AssistantMessage, form: MessagesForm): Members {
  const { legacy = false, states = false, marks = false } = form;
  const parts = assistantParts(message);
  const texts = parts.filter((part) => part.type === "text");
  const refusals = parts.filter((part) => part.type === "refusal").map(({ refusal }) => refusal);
  const calls = assistantCalls(message);
  const reasoning = reasoningOf(message);
  const [only] = texts;
  const { tool_calls: written, ...legacyCall } = writeCalls(calls, legacy);
  return {
    role: "assistant",
    content: only === undefined ? null : texts.length === 1 && !marks ? only.text : writeContent(texts, marks),
    ...named(message.name),
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(refusals.length > 0 && { refusal: refusals.join("") }),
    ...(states && reasoningStates(message)),
    ...legacyCall,
    ...(written !== undefined && { tool_calls: states ? withCallStates(written as Members[], message) : written }),
  };
}

/** The members of a chat message with the states of its reasoning. */
export function reasoningStates(message: AssistantMessage): Members {
  const details: unknown[] = [];
  const blocks: Members[] = [];
  for (const part of assistantParts(message)) {
    const state = part.type === "reasoning" ? part.state : undefined;
    if (part.type !== "reasoning" || !state) continue;
    if (state.kind === "details") for (const entry of state.value) details.push(entry);
    else if (state.kind === "signature") blocks.push({ type: "thinking", thinking: part.text, signature: state.value });
    else if (state.kind === "redacted") blocks.push({ type: "redacted_thinking", data: state.value });
  }
  return {
    ...(details.length > 0 && { reasoning_details: details }),
    ...(blocks.length > 0 && { thinking_blocks: blocks }),
  };
}

/** Returns the calls of a chat message with the states that `message` has of them, and no others. */
export function withCallStates(calls: readonly Members[], message: AssistantMessage): Members[] {
  const states = new Map<unknown, Readonly<Record<string, unknown>>>();
  for (const part of assistantParts(message))
    if (part.type === "tool-call" && part.state) states.set(part.id, part.state.value);
  return calls.map((call) => ({ ...withoutCallState(call), ...states.get(call["id"]) }));
}

function withoutCallState(call: Members): Members {
  if (!callStateMembers.some((name) => Object.hasOwn(call, name))) return call;
  return Object.fromEntries(Object.entries(call).filter(([name]) => !isCallStateMember(name)));
}

function isCallStateMember(name: string): boolean {
  return (callStateMembers as readonly string[]).includes(name);
}

/** The result of a tool that failed, which says so: chat has no member for it. */
function asError(content: Content): Content {
  const [first] = typeof content === "string" ? [content] : content;
  const text = typeof first === "string" ? first : first?.type === "text" ? first.text : "";
  if (/^\W{0,8}(?:tool_use_)?error/i.test(text)) return content;
  if (typeof content === "string") return content === "" ? "Error" : `Error: ${content}`;
  return [{ type: "text", text: "Error:" }, ...content];
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

function writeContent(content: Content, marks: boolean): string | Members[] {
  if (!marks) return typeof content === "string" ? content : content.map(writePart);
  if (content === "") return content;
  const parts = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
  return parts.map((part) => Object.assign(writePart(part), mark(part)));
}

function mark(part: CacheablePart | RefusalPart): Members {
  const minutes = "cacheMinutes" in part ? part.cacheMinutes : undefined;
  return minutes === undefined ? {} : { cache_control: cacheControl(minutes) };
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

/** Writes tools in the form of a chat request. `marks`: with those of the prompt cache. */
export function writeChatTools(tools: readonly Tool[], marks = false): RequestBody[] {
  return tools.map((tool) => ({
    ...(tool.kind === "custom"
      ? { type: "custom", custom: { name: tool.name, ...described(tool), ...inputFormat(tool) } }
      : { type: "function", function: writeFunction(tool) }),
    ...(marks && mark(tool)),
  }));
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
