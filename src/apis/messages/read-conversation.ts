import { callsOf, contentOf, partsOf } from "../../core/assistant-parts.ts";
import type {
  AssistantMessage,
  AssistantPart,
  Content,
  ContentPart,
  FilePart,
  Message,
  SystemMessage,
  ToolMessage,
  UserMessage,
} from "../../core/message.ts";
import { isLong, jsonInPieces } from "../../core/json-in-pieces.ts";
import { Pace } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import { BodyCounter } from "../body-counter.ts";
import { refusal } from "./request-issue.ts";
import type {
  RawBlock,
  RawDocument,
  RawImage,
  RawMessage,
  RawRequest,
  RawResultBlock,
  RawServerBlock,
  RawText,
  RawToolResult,
  RawToolUse,
} from "./request-shapes.ts";
import { openThought } from "./sealed-thought.ts";

export interface ReadConversation {
  readonly messages: readonly Message[];
  /** The last message is the assistant's, and is to be continued. */
  readonly isPrefilled: boolean;
}

/** What is known while a conversation is read. */
interface Reading {
  /** The names of what was called, by the calls' ids. */
  readonly names: Map<string, string>;
  /** The types of blocks that are left out. */
  readonly left: Set<string>;
  /** Of what is in the seals. */
  readonly seals: BodyCounter;
  readonly pace: Pace;
}

/**
 * A conversation in the neutral form: the system prompt first; a user's results of calls as messages of their own, directly after the
 * calls; messages of one role in a row as one, as Anthropic reads them.
 */
export function* readConversation({ system, messages: raw }: RawRequest, warnings: string[]): Steps<ReadConversation> {
  const names = new Map<string, string>();
  const messages: Message[] = [];
  const turns = new Turns(messages);
  const add = (message: Message): void => turns.add(message);
  const instructions = system === undefined ? "" : systemContent(system);
  if (instructions.length > 0) add({ role: "system", content: instructions, path: "system" });
  const left = new Set<string>();
  const reading: Reading = { names, left, seals: new BodyCounter(), pace: new Pace() };
  const lastUser = raw.findLastIndex(({ role }) => role === "user");
  for (const [index, message] of raw.entries()) {
    if (message.clear_at === "next_user_message" && index < lastUser) continue;
    for (const one of yield* neutralMessages(message, `messages.${index}`, reading)) add(one);
    if (reading.pace.isOver()) yield;
  }
  turns.end();
  for (const type of left)
    warnings.push(`messages: ${type} blocks are of Anthropic's own servers, and left out of the prompt`);
  const last = messages.at(-1);
  if (last?.role === "assistant" && partsOf(last).length === 0) messages.pop();
  return { messages, isPrefilled: endsOpen(messages) };
}

/**
 * What Claude Code puts first into its system prompt: a header with a value that changes with every request. A cache of prompts would
 * never find its beginning again. Source: https://github.com/ggml-org/llama.cpp/issues/20623.
 */
const billingHeader = "x-anthropic-billing-header:";

function systemContent(system: string | readonly RawText[]): Content {
  if (typeof system === "string") return system;
  return system.filter(({ text }) => text !== "" && !text.startsWith(billingHeader)).map(textPart);
}

function* neutralMessages(
  { role, content = [] }: RawMessage,
  path: string,
  reading: Reading,
): Steps<readonly Message[]> {
  const { names, left, pace } = reading;
  if (role === "assistant") return [yield* assistantMessage(content, path, reading)];
  if (typeof content === "string") return [{ role, content, path }];
  const messages: Message[] = [];
  let said: ContentPart[] = [];
  const flush = (): void => {
    if (said.length > 0) messages.push({ role, content: said, path });
    said = [];
  };
  for (const block of content) {
    if (block.type === "tool_result") {
      flush();
      messages.push(toolMessage(block, path, names));
      if (pace.isOver(1 + (Array.isArray(block.content) ? block.content.length : 0))) yield;
      continue;
    }
    const part = userPart(block, left);
    if (part) said.push(part);
  }
  flush();
  return messages.length > 0 || role === "system" ? messages : [{ role, content: "", path }];
}

function userPart(block: RawBlock, left: Set<string>): ContentPart | undefined {
  switch (block.type) {
    case "text":
      return block.text === "" ? undefined : textPart(block);
    case "image":
    case "document":
    case "search_result":
      return contentPart(block);
    case "tool_addition":
    case "tool_removal":
      return undefined;
    default:
      left.add(block.type);
      return undefined;
  }
}

function toolMessage(
  { tool_use_id: toolCallId, content, is_error: isError }: RawToolResult,
  path: string,
  names: ReadonlyMap<string, string>,
): ToolMessage {
  const name = names.get(toolCallId);
  return {
    role: "tool",
    content: typeof content === "string" ? content : resultContent(content ?? []),
    toolCallId,
    ...(name !== undefined && { name }),
    ...(isError === true && { isError }),
    path,
  };
}

/** A result without any text or other part is an empty one. */
function resultContent(blocks: readonly RawResultBlock[]): Content {
  const parts = blocks.filter((block) => block.type !== "text" || block.text !== "").map(contentPart);
  return parts.length === 0 ? "" : parts;
}

function contentPart(block: RawResultBlock): ContentPart {
  switch (block.type) {
    case "text":
      return textPart(block);
    case "image":
      return imagePart(block);
    case "document":
      return documentPart(block);
    case "search_result":
      return { type: "file", name: block.title, text: joined(block.content) };
    case "tool_reference":
      return { type: "text", text: `Tool ${block.tool_name} is now available.` };
  }
}

function textPart({ text }: RawText): { readonly type: "text"; readonly text: string } {
  return { type: "text", text };
}

function imagePart({ source }: RawImage): ContentPart {
  switch (source.type) {
    case "base64":
      return { type: "image", url: `data:${source.media_type};base64,${source.data}` };
    case "url":
      return { type: "image", url: source.url };
    case "file":
      return { type: "file", id: source.file_id };
  }
}

function documentPart({ title, context, source }: RawDocument): FilePart {
  const name = typeof title === "string" ? { name: title } : {};
  const before = typeof context === "string" && context !== "" ? `${context}\n\n` : "";
  switch (source.type) {
    case "text":
      return { type: "file", ...name, text: before + source.data };
    case "content":
      return { type: "file", ...name, text: before + joined(source.content) };
    case "base64":
      return { type: "file", ...name, data: `data:${source.media_type};base64,${source.data}` };
    case "url":
      return { type: "file", ...name, url: source.url };
    case "file":
      return { type: "file", ...name, id: source.file_id };
  }
}

function joined(content: string | readonly (RawText | RawImage)[]): string {
  if (typeof content === "string") return content;
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n");
}

function* assistantMessage(
  content: string | readonly RawBlock[],
  path: string,
  reading: Reading,
): Steps<AssistantMessage> {
  if (typeof content === "string") return { role: "assistant", content, path };
  const parts: AssistantPart[] = [];
  for (const block of content) {
    // Only a call may be long in itself: texts stay as they are.
    const part = block.type === "tool_use" ? yield* calledPart(block, path) : assistantPart(block, reading);
    if (reading.pace.isOver()) yield;
    if (!part) continue;
    if (part.type === "tool-call") reading.names.set(part.id, part.name);
    parts.push(part);
  }
  return { role: "assistant", content: contentOf(parts), path };
}

function* calledPart({ id, name, input }: RawToolUse, path: string): Steps<AssistantPart> {
  return { type: "tool-call", id, name, arguments: yield* argumentsOf(input, path) };
}

function assistantPart(block: Exclude<RawBlock, RawToolUse>, { left, seals }: Reading): AssistantPart | undefined {
  switch (block.type) {
    case "text":
      return block.text === "" ? undefined : textPart(block);
    case "thinking":
      return thoughtPart(block.thinking, block.signature ?? "", seals);
    case "redacted_thinking": {
      const { encrypted = block.data, id } = openThought(block.data, seals) ?? {};
      return { type: "reasoning", text: "", encrypted, ...(id !== undefined && { id }) };
    }
    case "compaction":
      return block.content ? { type: "text", text: block.content } : undefined;
    default:
      left.add((block satisfies RawBlock as RawServerBlock).type);
      return undefined;
  }
}

/** A signature of ours says what the block does not; it is no signature to anybody else. */
function thoughtPart(text: string, signature: string, seals: BodyCounter): AssistantPart | undefined {
  const own = openThought(signature, seals);
  if (!own) return { type: "reasoning", text, ...(signature !== "" && { signature }) };
  const { encrypted, id } = own;
  return {
    type: "reasoning",
    text: text === "" ? (own.text ?? "") : text,
    ...(encrypted !== undefined && { encrypted }),
    ...(id !== undefined && { id }),
  };
}

/** So much of a call is written in one step, in characters. */
const pieceLength = 64 * 1024;

/** The call as the model wrote it, where it was no object and Anthropic's name for that stands around it. */
function* argumentsOf(input: Readonly<Record<string, unknown>>, path: string): Steps<string> {
  const { INVALID_JSON: raw } = input;
  if (typeof raw === "string" && Object.keys(input).length === 1) return raw;
  try {
    if (!isLong(input, pieceLength)) return JSON.stringify(input);
    const pieces: string[] = [];
    for (const piece of jsonInPieces(input, pieceLength)) {
      pieces.push(piece);
      yield;
    }
    return pieces.join("");
  } catch {
    throw refusal(path, "the input of a `tool_use` block is nested too deeply");
  }
}

/**
 * Puts messages together into turns as Anthropic reads them: messages of users or of the assistant in a row become one, whose parts are
 * concatenated once, and the results of a turn's calls come directly after the calls. A result that follows no call becomes part of the
 * user's message. Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls ("tool result blocks must
 * come first in the content array").
 */
class Turns {
  readonly #messages: Message[];
  #assistant: AssistantMessage[] = [];
  /** The messages since the assistant's last one. */
  #replies: (SystemMessage | UserMessage | ToolMessage)[] = [];

  constructor(messages: Message[]) {
    this.#messages = messages;
  }

  add(message: Message): void {
    if (message.role !== "assistant") {
      this.#replies.push(message);
      return;
    }
    if (this.#replies.length > 0) this.end();
    this.#assistant.push(message);
  }

  end(): void {
    const assistant = joinedAssistant(this.#assistant);
    const replies = this.#replies;
    this.#assistant = [];
    this.#replies = [];
    if (assistant) this.#messages.push(assistant);
    const hasCalls = assistant !== undefined && callsOf(assistant).length > 0;
    if (hasCalls) for (const reply of replies) if (reply.role === "tool") this.#messages.push(reply);
    let users: UserMessage[] = [];
    const endUsers = (): void => {
      const [first] = users;
      if (first) this.#messages.push(users.length === 1 ? first : { ...first, content: users.flatMap(userParts) });
      users = [];
    };
    for (const reply of replies) {
      if (reply.role === "user") users.push(reply);
      else if (reply.role === "tool") {
        if (!hasCalls) users.push({ role: "user", content: reply.content, ...(reply.path && { path: reply.path }) });
      } else {
        endUsers();
        this.#messages.push(reply);
      }
    }
    endUsers();
  }
}

function joinedAssistant(row: readonly AssistantMessage[]): AssistantMessage | undefined {
  const [first] = row;
  return first && row.length > 1 ? { ...first, content: contentOf(row.flatMap(partsOf)) } : first;
}

function userParts({ content }: UserMessage): readonly ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** A last turn of the assistant's that calls nothing is a beginning. */
function endsOpen(messages: readonly Message[]): boolean {
  const last = messages.at(-1);
  return last?.role === "assistant" && partsOf(last).at(-1)?.type !== "tool-call";
}
