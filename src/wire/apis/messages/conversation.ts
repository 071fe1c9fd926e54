import { assistantCalls, assistantContent, assistantParts } from "../../core/message.ts";
import { failureMessages, isFailed, resultContent } from "../../core/hosted-result.ts";
import { modelName } from "../../core/hosted-tool.ts";
import { isLong, joinChunks, jsonChunks } from "../../core/json-chunks.ts";
import { isObject, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type {
  AssistantMessage,
  AssistantPart,
  Content,
  ContentPart,
  FilePart,
  Message,
  SystemMessage,
  TextPart,
  ToolCallPart,
  ToolMessage,
  UserMessage,
} from "../../core/message.ts";
import type { CallState, TextState } from "../../core/turn-state.ts";
import { StepCounter } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import { BodyCounter } from "../body-counter.ts";
import { withMark } from "../request/cache-mark.ts";
import { isHostedResult, isHostedUse, readHostedResult, readHostedUse } from "./hosted-blocks.ts";
import { refusal } from "./request-issue.ts";
import type {
  ContentBlockParam,
  DocumentBlockParam,
  ImageBlockParam,
  MessageParam,
  MessageRequest,
  ResultBlockParam,
  TextBlockParam,
  ToolResultBlockParam,
  ToolUseBlockParam,
} from "./request-schema.ts";
import type { SealedReasoning, TurnSeal } from "../turn-seal.ts";

/* From the messages of a request to neutral messages. */

export interface ReadConversation {
  readonly messages: readonly Message[];
  /** The last message is a prefill: the assistant's beginning of the answer. */
  readonly isPrefilled: boolean;
  /** See `Passthrough`. */
  readonly sealed: ReadonlyMap<string, SealedReasoning>;
}

/** State while a conversation is read. */
interface Reading {
  /** Names of the called tools by the ids of their calls. */
  readonly names: Map<string, string>;
  /** Types of the blocks that are left out. */
  readonly omitted: Set<string>;
  readonly seal: TurnSeal;
  /** Limits the JSON of sealed values. */
  readonly counter: BodyCounter;
  /** See `Passthrough`. */
  readonly sealed: Map<string, SealedReasoning>;
  /** The states of calls, by the ids of the calls. */
  readonly callStates: Map<string, CallState>;
  readonly pace: StepCounter;
}

/**
 * Returns the conversation as neutral messages: the system prompt first, results of calls as messages of their own directly after the
 * calls, and consecutive messages of one role as one, as Anthropic reads them.
 */
export function* readMessageParams(
  { system, messages: sent }: MessageRequest,
  warnings: string[],
  seal: TurnSeal,
): Steps<ReadConversation> {
  const turns = new Turns();
  const instructions = promptSystem(system);
  if (instructions.length > 0) turns.add({ role: "system", content: instructions, path: "system" });
  const reading: Reading = {
    names: new Map(),
    omitted: new Set(),
    seal,
    counter: new BodyCounter(),
    sealed: new Map(),
    callStates: new Map(),
    pace: new StepCounter(),
  };
  const lastUser = sent.findLastIndex(({ role }) => role === "user");
  for (const [index, message] of sent.entries()) {
    if (message.role === "system" && message.clear_at === "next_user_message" && index < lastUser) continue;
    const isLast = index === sent.length - 1;
    for (const one of yield* neutralMessages(message, `messages.${index}`, reading, isLast)) turns.add(one);
    if (reading.pace.endsStep()) yield;
  }
  turns.end();
  for (const type of reading.omitted)
    warnings.push(`messages: ${type} blocks are of Anthropic's own servers, and left out of the prompt`);
  const { messages } = turns;
  const last = messages.at(-1);
  if (last?.role === "assistant" && assistantParts(last).length === 0) messages.pop();
  return { messages, isPrefilled: isPrefill(messages.at(-1)), sealed: reading.sealed };
}

function isPrefill(last: Message | undefined): boolean {
  return last?.role === "assistant" && assistantParts(last).at(-1)?.type !== "tool-call";
}

/**
 * The beginning of a block that Claude Code puts first into its system prompt. Its value changes with every request, so no prompt would
 * share a prefix with an earlier one. Source: https://github.com/ggml-org/llama.cpp/issues/20623.
 */
const billingHeader = "x-anthropic-billing-header:";

/** Returns the system prompt that the model gets. */
export function promptSystem(system: MessageRequest["system"] = ""): Content {
  if (typeof system === "string") return system;
  return system.filter(({ text }) => text !== "" && !text.startsWith(billingHeader)).map(textPart);
}

function* neutralMessages(
  message: MessageParam,
  path: string,
  reading: Reading,
  isLast: boolean,
): Steps<readonly Message[]> {
  const { role, content = [] } = message;
  const { names, omitted, pace } = reading;
  if (role === "assistant") return yield* assistantMessages(content, path, reading, isLast);
  if (typeof content === "string") return [{ role, content, path }];
  const messages: Message[] = [];
  let parts: ContentPart[] = [];
  const endMessage = (): void => {
    if (parts.length > 0) messages.push({ role, content: parts, path });
    parts = [];
  };
  for (const block of content) {
    if (block.type === "tool_result") {
      endMessage();
      messages.push(toolMessage(block, path, names));
      if (pace.endsStep(1 + (Array.isArray(block.content) ? block.content.length : 0))) yield;
      continue;
    }
    const part = userPart(block, omitted);
    if (part) parts.push(part);
  }
  endMessage();
  return messages.length > 0 || role === "system" ? messages : [{ role, content: "", path }];
}

function userPart(block: ContentBlockParam, omitted: Set<string>): ContentPart | undefined {
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
      omitted.add(block.type);
      return undefined;
  }
}

function toolMessage(block: ToolResultBlockParam, path: string, names: ReadonlyMap<string, string>): ToolMessage {
  const { tool_use_id: toolCallId, content, is_error: isError } = block;
  const name = names.get(toolCallId);
  const result: ToolMessage = {
    role: "tool",
    content: typeof content === "string" ? content : blocksContent(content ?? []),
    toolCallId,
    ...(name !== undefined && { name }),
    ...(isError === true && { isError }),
    path,
  };
  return withMark(result, block);
}

function blocksContent(blocks: readonly ResultBlockParam[]): Content {
  const parts = blocks.filter((block) => block.type !== "text" || block.text !== "").map(contentPart);
  return parts.length === 0 ? "" : parts;
}

function contentPart(block: ResultBlockParam): ContentPart {
  switch (block.type) {
    case "text":
      return textPart(block);
    case "image":
      return withMark(imagePart(block), block);
    case "document":
      return withMark(documentPart(block), block);
    case "search_result":
      return withMark({ type: "file", name: block.title, text: joinedText(block.content) }, block);
    case "tool_reference":
      return withMark({ type: "text", text: `Tool ${block.tool_name} is now available.` }, block);
  }
}

function textPart(block: TextBlockParam): TextPart {
  return withMark({ type: "text", text: block.text }, block);
}

function imagePart({ source }: ImageBlockParam): ContentPart {
  switch (source.type) {
    case "base64":
      return { type: "image", url: `data:${source.media_type};base64,${source.data}` };
    case "url":
      return { type: "image", url: source.url };
    case "file":
      return { type: "file", id: source.file_id };
  }
}

function documentPart({ title, context, source }: DocumentBlockParam): FilePart {
  const name = typeof title === "string" ? { name: title } : {};
  const before = typeof context === "string" && context !== "" ? `${context}\n\n` : "";
  switch (source.type) {
    case "text":
      return { type: "file", ...name, text: before + source.data };
    case "content":
      return { type: "file", ...name, text: before + joinedText(source.content) };
    case "base64":
      return { type: "file", ...name, data: `data:${source.media_type};base64,${source.data}` };
    case "url":
      return { type: "file", ...name, url: source.url };
    case "file":
      return { type: "file", ...name, id: source.file_id };
  }
}

function joinedText(content: string | readonly (TextBlockParam | ImageBlockParam)[]): string {
  if (typeof content === "string") return content;
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n");
}

/**
 * Returns a message of the assistant, and where it has calls that ran on the server, their results as messages of their own, each followed
 * by what the model said next.
 */
function* assistantMessages(
  content: string | readonly ContentBlockParam[],
  path: string,
  reading: Reading,
  isLast: boolean,
): Steps<readonly Message[]> {
  const { names, pace } = reading;
  if (typeof content === "string") return [{ role: "assistant", content, path }];
  const messages: Message[] = [];
  let parts: AssistantPart[] = [];
  let results: ToolMessage[] = [];
  /** The server's calls without a result, by their ids. */
  const open = new Map<string, string>();
  const endRound = (): void => {
    messages.push({ role: "assistant", content: assistantContent(parts), path }, ...results);
    parts = [];
    results = [];
  };
  for (const block of content) {
    const server: JsonObject | undefined =
      block.type === "tool_use" || block.type === "text" ? undefined : { ...block };
    const hosted = server && isHostedUse(server) ? readHostedUse(server) : undefined;
    const isResult = server !== undefined && isHostedResult(server);
    if (isResult) {
      const id = scalarText(server["tool_use_id"]);
      const name = open.get(id);
      open.delete(id);
      if (name === undefined) reading.omitted.add(block.type);
      else {
        const result = readHostedResult(server, reading.seal, reading.counter);
        const failed = isFailed(result) && { isError: true };
        results.push({ role: "tool", content: resultContent(result), toolCallId: id, name, ...failed, path });
      }
    } else if (results.length > 0 && open.size === 0) endRound();
    if (hosted && hosted.kind !== "other") {
      const input = server?.["input"];
      const name = modelName(hosted);
      open.set(hosted.id, name);
      const text = yield* argumentsOf(isObject(input) ? input : {}, path);
      parts.push({ type: "tool-call", id: hosted.id, name, arguments: text });
    } else if (hosted) reading.omitted.add(block.type);
    else if (isResult) continue;
    else if (block.type === "tool_use") {
      const state = reading.callStates.get(block.id);
      // A later call may have the same id.
      if (state) reading.callStates.delete(block.id);
      parts.push({ ...(yield* callPart(block, path)), ...(state && { state }) });
      names.set(block.id, block.name);
    } else {
      const part = assistantPart(block, reading);
      if (part) parts.push(part);
    }
    if (pace.endsStep()) yield;
  }
  // A call at the end of a paused answer runs when the answer continues.
  for (const [toolCallId, name] of isLast ? [] : open)
    results.push({
      role: "tool",
      content: `Error: ${failureMessages.unavailable}`,
      toolCallId,
      name,
      isError: true,
      path,
    });
  if (parts.length > 0 || messages.length === 0) endRound();
  else for (const result of results) messages.push(result);
  return messages;
}

function* callPart(block: ToolUseBlockParam, path: string): Steps<ToolCallPart> {
  const { id, name, input } = block;
  return withMark({ type: "tool-call", id, name, arguments: yield* argumentsOf(input, path) }, block);
}

function assistantPart(
  block: Exclude<ContentBlockParam, ToolUseBlockParam>,
  reading: Reading,
): AssistantPart | undefined {
  const { omitted } = reading;
  switch (block.type) {
    case "text":
      return block.text === "" ? undefined : textPart(block);
    case "thinking":
      return reasoningPart(block.thinking, { kind: "signature", value: block.signature ?? "" }, reading);
    case "redacted_thinking":
      return reasoningPart("", { kind: "redacted", value: block.data }, reading);
    case "compaction":
      return block.content ? { type: "text", text: block.content } : undefined;
    case "mcp_tool_listing":
      return undefined;
    case "document": {
      const { text, name } = documentPart(block);
      if (text !== undefined) return { type: "text", text: name === undefined ? text : `${name}\n\n${text}` };
      omitted.add(block.type);
      return undefined;
    }
    default:
      omitted.add(block.type);
      return undefined;
  }
}

/** A value that this server has sealed replaces what the block does not show. No other server can verify it. */
function reasoningPart(
  text: string,
  state: TextState,
  { seal, counter, sealed, callStates }: Reading,
): AssistantPart | undefined {
  const opened = seal.open(state.value, counter);
  if (!opened) return { type: "reasoning", text, ...(state.value !== "" && { state }) };
  const { text: hidden = "", id, state: own, callId } = opened;
  sealed.set(state.value, opened);
  if (own?.kind === "call") {
    if (callId !== undefined) callStates.set(callId, own);
    return undefined;
  }
  const shown = text === "" ? hidden : text;
  if (shown === "" && !own) return undefined;
  return { type: "reasoning", text: shown, ...(id !== undefined && { id }), ...(own && { state: own }) };
}

/** The length of JSON that is written in one step, in characters. */
const chunkLength = 64 * 1024;

/** Returns a call's arguments as JSON, or as the text that `INVALID_JSON` holds: Anthropic's form of arguments that are not an object. */
function* argumentsOf(input: JsonObject, path: string): Steps<string> {
  const { INVALID_JSON: text } = input;
  if (typeof text === "string" && Object.keys(input).length === 1) return text;
  try {
    return isLong(input, chunkLength) ? yield* joinChunks(jsonChunks(input, chunkLength)) : JSON.stringify(input);
  } catch {
    throw refusal(path, "the input of a `tool_use` block is nested too deeply");
  }
}

/**
 * Joins messages into turns as Anthropic reads them: consecutive messages of users or of the assistant become one, and the results of a
 * turn's calls come directly after the calls. A result that follows no call becomes part of the user's message. Source:
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls ("tool result blocks must come first in the content
 * array").
 */
class Turns {
  readonly messages: Message[] = [];
  #assistant: AssistantMessage[] = [];
  /** The messages since the last one of the assistant. */
  #replies: (SystemMessage | UserMessage | ToolMessage)[] = [];

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
    if (assistant) this.messages.push(assistant);
    const hasCalls = assistant !== undefined && assistantCalls(assistant).length > 0;
    if (hasCalls) for (const reply of replies) if (reply.role === "tool") this.messages.push(reply);
    let users: UserMessage[] = [];
    const endUsers = (): void => {
      const [first] = users;
      if (first) this.messages.push(users.length === 1 ? first : { ...first, content: users.flatMap(userParts) });
      users = [];
    };
    for (const reply of replies) {
      if (reply.role === "user") users.push(reply);
      else if (reply.role === "tool") {
        if (!hasCalls) users.push({ role: "user", content: reply.content, ...(reply.path && { path: reply.path }) });
      } else {
        endUsers();
        this.messages.push(reply);
      }
    }
    endUsers();
  }
}

function joinedAssistant(messages: readonly AssistantMessage[]): AssistantMessage | undefined {
  const [first] = messages;
  return first && messages.length > 1
    ? { ...first, content: assistantContent(messages.flatMap(assistantParts)) }
    : first;
}

function userParts({ content }: UserMessage): readonly ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
