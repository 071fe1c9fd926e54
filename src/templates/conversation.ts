import { callsOf, partsOf, thoughtOf } from "../core/assistant-parts.ts";
import { argumentsOfInput } from "../core/custom-tool.ts";
import { isObject } from "../core/json.ts";
import type { AssistantMessage, Content, ContentPart, Message, ToolCall } from "../core/message.ts";
import { matchCalls } from "./call-ids.ts";
import type { TemplateCapabilities } from "./capabilities.ts";
import { parseExactJson } from "./exact-json.ts";
import { toJson } from "./jinja/python-json.ts";
import { runtimeValue } from "./jinja/values.ts";
import type { TemplateMessage } from "./template-message.ts";
import type { UserText } from "./user-text.ts";

/** How messages are shaped. */
export interface Shaping {
  readonly wants: TemplateCapabilities;
  readonly user: UserText;
  readonly warnings: string[];
  readonly writeCall: WriteCall;
}

/** Writes a call as the model would; null: the model has no syntax for calls. */
export type WriteCall = (call: {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}) => string | null;

/**
 * The conversation as this template reads it, the client's text marked. Content holds nothing but text. Throws `FailureError` for a
 * result that follows no call.
 */
export function templateMessages(
  messages: readonly Message[],
  { toolInstruction, ...shaping }: Shaping & { readonly toolInstruction?: string | undefined },
): TemplateMessage[] {
  const { wants, user, warnings } = shaping;
  const calls = matchCalls(messages, wants.callIds, warnings);
  const shaped = messages.map((message, index): TemplateMessage => {
    const { path = `messages[${index}]` } = message;
    if (message.role === "assistant") return assistantMessage(message, path, calls.ofCalls(index), shaping);
    const text = textOf(message.content);
    const foreign = message.role === "user" || message.role === "tool";
    const content = foreign ? user.markForeignText(text) : user.markText(text);
    if (message.role === "tool") {
      if (!wants.toolResults) return { role: "user", content };
      const { id, name } = calls.answered(index);
      return {
        role: "tool",
        content,
        tool_call_id: user.markText(id),
        ...(name !== undefined && { name: user.markText(name) }),
      };
    }
    return {
      role: message.role === "developer" && !wants.developerRole ? "system" : message.role,
      content,
      ...(message.name !== undefined && { name: user.markForeignText(message.name) }),
    };
  });
  const instructed = toolInstruction === undefined ? shaped : withInstruction(shaped, user.markText(toolInstruction));
  return inParts(systemInPlace(wants.laterSystems ? instructed : laterSystemsTold(instructed), wants), wants);
}

function assistantMessage(
  message: AssistantMessage,
  path: string,
  ids: readonly string[],
  shaping: Shaping,
): TemplateMessage {
  const { wants, user } = shaping;
  const calls = callsOf(message);
  const reasoning = thoughtOf(message);
  const spoken = spokenBy(message);
  const name = message.name === undefined ? {} : { name: user.markText(message.name) };
  if (calls.length > 0 && !wants.toolCalls) {
    const written = calls.map((call) => writtenCall(call, shaping));
    const content = [user.markText(spoken ?? ""), ...written].filter((part) => part !== "").join("\n");
    return { role: "assistant", content, ...name };
  }
  return {
    role: "assistant",
    ...content(spoken === undefined ? undefined : user.markText(spoken), calls.length > 0, wants),
    ...name,
    ...(reasoning !== undefined && {
      [wants.reasoning === "part" ? reasoningPart : (wants.reasoning ?? "reasoning_content")]: user.markText(reasoning),
    }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call, index) => templateCall(call, ids[index] ?? call.id, path, shaping)),
    }),
  };
}

/** The member that holds reasoning until the content becomes a list of parts. */
const reasoningPart = "reasoning part";

function content(
  text: string | undefined,
  besideCalls: boolean,
  wants: TemplateCapabilities,
): { content?: string | null } {
  if (text !== undefined) return { content: text };
  if (!besideCalls || wants.contentBesideCalls === "empty") return { content: "" };
  return wants.contentBesideCalls === "null" ? { content: null } : {};
}

/** The JSON of a call's arguments. The input of a custom tool becomes an argument, since templates show such a tool as a function. */
function argumentsText({ kind, arguments: text }: ToolCall): string {
  return kind === "custom" ? JSON.stringify(argumentsOfInput(text)) : text;
}

/** Arguments are an object for templates that want one; arguments that are not JSON stay text. */
function templateCall(call: ToolCall, id: string, path: string, { wants, user, warnings }: Shaping): unknown {
  const text = argumentsText(call);
  let args: unknown = user.markForeignText(text);
  if (wants.arguments === "object") {
    try {
      args = user.markForeign(parseExactJson(text.trim() === "" ? "{}" : text));
    } catch {
      warnings.push(`${path}: the arguments of the call ${call.id} are not JSON; the template gets them as text.`);
    }
  }
  return { id: user.markText(id), type: "function", function: { name: user.markText(call.name), arguments: args } };
}

/**
 * A call in the text of the assistant's message. Only the client's name and arguments are marked, since the syntax around them is made of
 * the model's tokens.
 */
function writtenCall(call: ToolCall, { user, writeCall }: Shaping): string {
  const marked = user.markText(call.name);
  const text = argumentsText(call);
  let args: unknown;
  try {
    args = user.markForeign(JSON.parse(text.trim() === "" ? "{}" : text) as unknown);
  } catch {
    args = user.markForeignText(text);
  }
  const written = isObject(args) ? writeCall({ name: marked, arguments: args }) : null;
  return written ?? toJson(runtimeValue({ name: marked, arguments: args }), [], user);
}

/** Adds to the first system message, or puts one first. */
function withInstruction(messages: readonly TemplateMessage[], instruction: string): TemplateMessage[] {
  const [first, ...rest] = messages;
  if (first === undefined || !isSystem(first)) return [{ role: "system", content: instruction }, ...messages];
  return [{ ...first, content: `${String(first["content"])}\n\n${instruction}` }, ...rest];
}

function isSystem({ role }: TemplateMessage): boolean {
  return role === "system" || role === "developer";
}

/** Puts the system's words where this template takes them: one message at most, or before the first user's words. */
function systemInPlace(messages: readonly TemplateMessage[], wants: TemplateCapabilities): TemplateMessage[] {
  if (wants.systemRole === "any") return [...messages];
  const end = messages.findIndex((message) => !isSystem(message));
  const leading = messages.slice(0, end === -1 ? messages.length : end);
  const rest = messages.slice(leading.length);
  const [first] = leading;
  if (first === undefined) return rest;
  const text = leading.map((message) => String(message["content"])).join("\n\n");
  if (wants.systemRole === "first") return [{ ...first, content: text }, ...rest];
  const [next, ...others] = rest;
  if (next?.role !== "user") return [{ role: "user", content: text }, ...rest];
  return [{ ...next, content: `${text}\n\n${String(next["content"])}` }, ...others];
}

/**
 * System messages behind the first other one, as words of the user's, for templates that drop or refuse them (16 of 70; agents such as
 * Claude Code send them always). They join the words before them, so that no two turns of one role follow each other.
 */
function laterSystemsTold(messages: readonly TemplateMessage[]): TemplateMessage[] {
  const told: TemplateMessage[] = [];
  /** A turn of the user's was made of a system message, and the user's own next words belong to it. */
  let isMade = false;
  for (const message of messages) {
    const last = told.at(-1);
    const isLater = isSystem(message) && last !== undefined && !isSystem(last);
    const joins: boolean = isLater ? last.role !== "assistant" : isMade && message.role === "user";
    if (joins && last) told[told.length - 1] = { ...last, content: joinedContent(last, message) };
    else told.push(isLater ? { ...message, role: "user" } : message);
    isMade = isLater && (!joins || isMade);
  }
  return told;
}

function joinedContent(first: TemplateMessage, second: TemplateMessage): string {
  return `${String(first["content"])}\n\n${String(second["content"])}`;
}

/** Content as lists of parts, for templates that read only these, and for reasoning that is a part. */
function inParts(messages: readonly TemplateMessage[], wants: TemplateCapabilities): TemplateMessage[] {
  if (wants.content === "text" && wants.reasoning !== "part") return [...messages];
  return messages.map((message) => {
    const { [reasoningPart]: reasoning, content, ...others } = message;
    if (reasoning === undefined && wants.content === "text") return message;
    const parts: unknown[] = reasoning === undefined ? [] : [{ type: "thinking", thinking: reasoning }];
    if (typeof content === "string" && (content !== "" || parts.length === 0))
      parts.push({ type: "text", text: content });
    return { ...others, content: parts };
  });
}

/** The assistant's words; a refusal only if there is no other text. undefined: it said nothing. */
function spokenBy(message: AssistantMessage): string | undefined {
  const words = partsOf(message).filter((part) => part.type !== "reasoning" && part.type !== "tool-call");
  if (words.length === 0) return undefined;
  const said = words.some((part) => part.type === "text") ? words.filter((part) => part.type !== "refusal") : words;
  return textOf(said);
}

/** Text parts are joined with newlines, as the servers around llama.cpp and vLLM do. */
function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content.map(partText).join("\n");
}

/** A document of text begins with its name. */
function partText(part: ContentPart): string {
  switch (part.type) {
    case "text":
      return part.text;
    case "refusal":
      return part.refusal;
    case "file":
      return [part.name, part.text].filter((text) => text !== undefined).join("\n\n");
    default:
      return "";
  }
}
