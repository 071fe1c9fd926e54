import { assistantCalls, assistantParts, reasoningOf, ShortIds } from "../../wire/core/message.ts";
import type {
  AssistantMessage,
  AudioPart,
  Content,
  ContentPart,
  ImagePart,
  JsonSchema,
  Message,
  Tool,
  ToolCall,
} from "../../wire/core/message.ts";
import { argumentsOfInput, parametersOf } from "../../wire/core/custom-tool.ts";
import { invalidRequest } from "../../wire/core/failure.ts";
import { isObject } from "../../wire/core/json.ts";
import type { TemplateCapabilities, TemplateMessage } from "./capabilities.ts";
import { parseExactJson } from "./exact-json.ts";
import { toJson } from "./jinja/python-text.ts";
import { runtimeValue } from "./jinja/values.ts";
import type { UserText } from "./user-text.ts";

/** How messages are converted for a template. */
interface Shaping {
  readonly wants: TemplateCapabilities;
  readonly user: UserText;
  readonly warnings: string[];
  readonly writeCall: WriteCall;
  /** A character that occurs nowhere else: stands between the texts of a content until it is known where the content goes. */
  readonly between: string;
  /** Returns the mark of an image or a recording. */
  readonly markMedium: (part: ImagePart | AudioPart, path: string) => string;
}

/** Writes a call as the model would; returns null if the model has no syntax for calls. */
export type WriteCall = (call: {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}) => string | null;

/**
 * Converts a conversation to the messages that this template accepts, with client text, images and recordings marked. Throws
 * `FailureError` if a tool result follows no call.
 */
export function templateMessages(
  messages: readonly Message[],
  { toolInstruction, ...more }: Omit<Shaping, "between"> & { readonly toolInstruction?: string | undefined },
): TemplateMessage[] {
  const { wants, user, warnings } = more;
  const shaping = { ...more, between: user.placeMark() };
  const calls = matchCalls(messages, wants.callIds, warnings);
  const shaped = messages.map((message, index): TemplateMessage => {
    const { path = `messages[${index}]` } = message;
    if (message.role === "assistant") return assistantMessage(message, path, calls.ofCalls(index), shaping);
    const isForeign = message.role === "user" || message.role === "tool";
    const content = textOf(message.content, path, shaping, isForeign);
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
  const placed = systemInPlace(wants.laterSystems ? instructed : laterSystemsAsUser(instructed), wants);
  return placed.map((message) => withContent(message, wants, shaping.between));
}

function assistantMessage(
  message: AssistantMessage,
  path: string,
  ids: readonly string[],
  shaping: Shaping,
): TemplateMessage {
  const { wants, user } = shaping;
  const calls = assistantCalls(message);
  let reasoning = reasoningOf(message);
  let spoken = spokenText(message, path, shaping);
  const name = message.name === undefined ? {} : { name: user.markText(message.name) };
  if (calls.length > 0 && !wants.toolCalls) {
    const written = calls.map((call) => writtenCall(call, shaping));
    const content = [spoken ?? "", ...written].filter((part) => part !== "").join("\n");
    return { role: "assistant", content, ...name };
  }
  reasoning = reasoning === undefined ? undefined : user.markText(reasoning);
  if (
    wants.rejectsReasoningWithText &&
    calls.length > 0 &&
    reasoning !== undefined &&
    reasoning !== "" &&
    spoken !== undefined &&
    spoken !== ""
  ) {
    reasoning = `${reasoning}\n\n${spoken.replaceAll(shaping.between, "\n")}`;
    spoken = undefined;
  }
  return {
    role: "assistant",
    ...content(spoken, calls.length > 0, wants),
    ...name,
    ...(reasoning !== undefined && {
      [wants.reasoning === "part" ? reasoningPart : (wants.reasoning ?? "reasoning_content")]: reasoning,
    }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call, index) => templateCall(call, ids[index] ?? call.id, path, shaping)),
    }),
  };
}

/** Temporary member for reasoning that becomes a part of the content. */
const reasoningPart = "reasoning part";

function content(
  text: string | undefined,
  hasCalls: boolean,
  wants: TemplateCapabilities,
): { content?: string | null } {
  if (text !== undefined) return { content: text };
  if (!hasCalls || wants.contentWithCalls === "empty") return { content: "" };
  return wants.contentWithCalls === "null" ? { content: null } : {};
}

/** The JSON of a call's arguments. The input of a custom tool is an argument, since templates render such a tool as a function. */
function argumentsText({ kind, arguments: text }: ToolCall): string {
  return kind === "custom" ? JSON.stringify(argumentsOfInput(text)) : text;
}

/** Arguments are an object for templates that require one; arguments that are not JSON stay text. */
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
 * Writes a call into the text of the assistant's message. Only the name and the arguments are marked, since the syntax around them may
 * contain the model's special tokens.
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

/** Appends the instruction to the first system message, or inserts a system message. */
function withInstruction(messages: readonly TemplateMessage[], instruction: string): TemplateMessage[] {
  const [first, ...rest] = messages;
  if (first === undefined || !isSystem(first)) return [{ role: "system", content: instruction }, ...messages];
  return [{ ...first, content: `${String(first["content"])}\n\n${instruction}` }, ...rest];
}

function isSystem({ role }: TemplateMessage): boolean {
  return role === "system" || role === "developer";
}

/** Moves the text of system messages to where this template accepts it: a single message, or the first user message. */
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
 * Converts system messages after the first other message to user messages, for templates that drop or reject them (16 of 70; agents such
 * as Claude Code always send them). They are appended to the message before them, so that roles still alternate.
 */
function laterSystemsAsUser(messages: readonly TemplateMessage[]): TemplateMessage[] {
  const converted: TemplateMessage[] = [];
  /** The last message was made from a system message: a user message that follows is appended to it. */
  let isMade = false;
  for (const message of messages) {
    const last = converted.at(-1);
    const isLater = isSystem(message) && last !== undefined && !isSystem(last);
    const joins: boolean = isLater ? last.role !== "assistant" : isMade && message.role === "user";
    if (joins && last) converted[converted.length - 1] = { ...last, content: joinedContent(last, message) };
    else converted.push(isLater ? { ...message, role: "user" } : message);
    isMade = isLater && (!joins || isMade);
  }
  return converted;
}

function joinedContent(first: TemplateMessage, second: TemplateMessage): string {
  return `${String(first["content"])}\n\n${String(second["content"])}`;
}

/** Replaces the content, whose texts have `between` between them, by the list or the text that this template reads. */
function withContent(message: TemplateMessage, wants: TemplateCapabilities, between: string): TemplateMessage {
  const { [reasoningPart]: reasoning, content, ...others } = message;
  const hasReasoning = reasoning !== undefined;
  if (typeof content !== "string" && !hasReasoning) return message;
  const texts = typeof content === "string" ? content.split(between) : [];
  const isList = texts.length > 1 && wants.listRoles.includes(message.role);
  if (wants.content === "text" && !isList && !hasReasoning) return { ...message, content: texts.join("\n") };
  const parts: unknown[] = hasReasoning ? [{ type: "thinking", thinking: reasoning }] : [];
  for (const text of isList ? texts : [texts.join("\n")]) {
    if (text !== "" || isList || parts.length === 0) parts.push({ type: "text", text });
  }
  return { ...others, content: parts };
}

/** The assistant's text; a refusal only if there is no other text. undefined if there is none. */
function spokenText(message: AssistantMessage, path: string, shaping: Shaping): string | undefined {
  const words = assistantParts(message).filter((part) => part.type !== "reasoning" && part.type !== "tool-call");
  if (words.length === 0) return undefined;
  const hasText = words.some((part) => part.type === "text");
  return textOf(hasText ? words.filter((part) => part.type !== "refusal") : words, path, shaping, false);
}

/**
 * Marks the texts of a content, each by itself, with `between` between them: a list for templates that read one, as in Transformers and vLLM,
 * else lines, as in the servers of llama.cpp and vLLM. As in llama.cpp, nothing is between a text and an image or a recording.
 */
function textOf(content: Content, path: string, { markMedium, user, between }: Shaping, isForeign: boolean): string {
  const marked = (text: string): string => (isForeign ? user.markForeignText(text) : user.markText(text));
  if (typeof content === "string") return marked(content);
  let text = "";
  let joins = false;
  for (const [at, part] of content.entries()) {
    const isMedium = part.type === "image" || part.type === "audio";
    if (isMedium) text += markMedium(part, (part.type === "audio" && part.path) || `${path}.content[${at}]`);
    else text += (joins ? between : "") + marked(partText(part));
    joins = !isMedium;
  }
  return text;
}

/** The name of a text document precedes its content. */
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

/** Converts tools to OpenAI's function tools, which templates read, with client text marked. A custom tool becomes a function. */
export function templateTools(tools: readonly Tool[], wants: TemplateCapabilities, user: UserText): unknown[] {
  return tools.map((tool) => {
    const { name, description } = tool;
    const parameters = parametersOf(tool);
    const isRequired = wants.descriptions === "required";
    const shown = isRequired ? withDescriptions(parameters ?? emptyParameters) : parameters;
    const text = wants.descriptions === "optional" ? description : (description ?? "");
    return {
      type: "function",
      function: user.mark({
        name,
        ...(text !== undefined && { description: text }),
        ...(shown !== undefined && { parameters: shown }),
      }),
    };
  });
}

const emptyParameters: JsonSchema = { type: "object", properties: {} };

/** Adds empty descriptions: some templates (Command R+) concatenate each parameter's description and fail without one. */
function withDescriptions(schema: JsonSchema): JsonSchema {
  if (!isObject(schema) || !isObject(schema["properties"])) return schema;
  const described = Object.entries(schema["properties"]).map(([name, property]) => {
    if (!isObject(property)) return [name, property] as const;
    const inner = withDescriptions(property) as object;
    return [name, "description" in inner ? inner : { ...inner, description: "" }] as const;
  });
  return { ...schema, properties: Object.fromEntries(described) };
}

/** A conversation's calls with their results. */
export interface MatchedCalls {
  /** The ids, for the template, of the calls in the assistant message at this index. */
  ofCalls(index: number): readonly string[];
  /** The call that the tool message at this index answers, with its id for the template. */
  answered(index: number): { readonly id: string; readonly name: string | undefined };
}

/**
 * Matches each tool result with its call by id. A result with an unknown id answers the first open call. Throws `FailureError`, with
 * OpenAI's message, for a result that follows no call.
 *
 * With `form` "nine", each id is replaced by one of nine letters or digits, which Mistral's templates require.
 */
export function matchCalls(messages: readonly Message[], form: "any" | "nine", warnings: string[]): MatchedCalls {
  const short = new ShortIds();
  const shown = (id: string): string => (form === "nine" ? short.of(id) : id);
  const callIds = new Map<number, readonly string[]>();
  const answers = new Map<number, { id: string; name: string | undefined }>();
  let open: OpenCalls | null = null;
  for (const [index, message] of messages.entries()) {
    if (message.role !== "tool") {
      const calls = message.role === "assistant" ? assistantCalls(message) : [];
      open = calls.length > 0 ? new OpenCalls(calls) : null;
      callIds.set(
        index,
        calls.map((call) => shown(call.id)),
      );
      continue;
    }
    if (open === null) {
      throw invalidRequest(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        `messages.[${index}].role`,
      );
    }
    const named = open.take(message.toolCallId);
    const call = named ?? open.takeFirst();
    if (!named) {
      warnings.push(
        `messages[${index}]: no open call has the id ${message.toolCallId}; taken as the next call's result.`,
      );
    }
    answers.set(index, { id: shown(call?.id ?? message.toolCallId), name: message.name ?? call?.name });
  }
  return {
    ofCalls: (index) => callIds.get(index) ?? [],
    answered: (index) => answers.get(index) ?? { id: "", name: undefined },
  };
}

/** The calls of a turn that have no result yet. Lookups take constant time. */
class OpenCalls {
  readonly #calls: readonly ToolCall[];
  readonly #taken = new Set<ToolCall>();
  /** The indexes of the calls with an id (ids may repeat), the last one first. */
  readonly #places = new Map<string, number[]>();
  /** All calls before this index are taken. */
  #first = 0;

  constructor(calls: readonly ToolCall[]) {
    this.#calls = calls;
    for (let at = calls.length - 1; at >= 0; at--) {
      const { id = "" } = calls[at] ?? {};
      const places = this.#places.get(id);
      if (places) places.push(at);
      else this.#places.set(id, [at]);
    }
  }

  /** Takes the first open call with an id; undefined if there is none. */
  take(id: string): ToolCall | undefined {
    const places = this.#places.get(id) ?? [];
    for (let at = places.pop(); at !== undefined; at = places.pop()) {
      const call = this.#calls[at];
      if (call && this.#isNew(call)) return call;
    }
    return undefined;
  }

  takeFirst(): ToolCall | undefined {
    for (let call = this.#calls[this.#first]; call; call = this.#calls[this.#first]) {
      this.#first++;
      if (this.#isNew(call)) return call;
    }
    return undefined;
  }

  #isNew(call: ToolCall): boolean {
    if (this.#taken.has(call)) return false;
    this.#taken.add(call);
    return true;
  }
}
