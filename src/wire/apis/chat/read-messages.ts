import { assistantCalls, assistantContent } from "../../core/message.ts";
import type { AssistantMessage, AssistantPart, Content, ContentPart, FilePart, Message } from "../../core/message.ts";
import { StepCounter } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import { cacheMinutesOf, withMark } from "../request/cache-mark.ts";
import type { RequestDraft } from "../request/draft.ts";
import { unsupportedEnumValue } from "../request/refusals.ts";
import { callStateOf } from "../tolerant/call-state.ts";
import { StateReader } from "./read-states.ts";
import type {
  ChatAssistantMessage,
  ChatRequestContent,
  ChatRequestMessage,
  fileContentPart,
} from "./request-schema.ts";
import type * as z from "zod";

/**
 * Converts the messages of a chat request to API-neutral messages. The result of a tool gets the name of the tool from the call with the
 * same id. Legacy `function` messages and `function_call`s become tool messages and calls with generated ids.
 */
export function* readMessages(raw: readonly ChatRequestMessage[], draft: RequestDraft): Steps<Message[]> {
  const history = new CallHistory(draft);
  const states = new StateReader(draft.turnSeal);
  const messages: Message[] = [];
  const pace = new StepCounter();
  for (const [index, message] of raw.entries()) {
    messages.push(neutralMessage(message, index, { history, states }));
    if (pace.endsStep(partCount(message))) yield;
  }
  if (states.sealed.size > 0) draft.sealed = states.sealed;
  return messages;
}

function partCount(message: ChatRequestMessage): number {
  const { tool_calls: calls = null, reasoning_details: details = null } = message.role === "assistant" ? message : {};
  return (
    1 + (calls?.length ?? 0) + (details?.length ?? 0) + (Array.isArray(message.content) ? message.content.length : 0)
  );
}

interface Reading {
  readonly history: CallHistory;
  readonly states: StateReader;
}

function neutralMessage(message: ChatRequestMessage, index: number, reading: Reading): Message {
  const { history } = reading;
  switch (message.role) {
    case "system":
    case "developer":
      return { role: message.role, content: markedContent(message), ...named(message.name) };
    case "user":
      return { role: "user", content: markedContent(message), ...named(message.name) };
    case "assistant":
      return history.addCalls(assistantMessage(message, index, reading), index);
    case "tool": {
      history.checkResult(message.content, index);
      const name = history.toolName(message.tool_call_id) ?? message.name;
      const result: Message = {
        role: "tool",
        content: neutralContent(message.content),
        toolCallId: message.tool_call_id,
        ...named(name),
      };
      return withMark(result, message);
    }
    case "function":
      return {
        role: "tool",
        content: message.content ?? "",
        toolCallId: history.legacyCallId(message.name, index),
        name: message.name,
      };
  }
}

function assistantMessage(message: ChatAssistantMessage, index: number, { states }: Reading): AssistantMessage {
  const { content = null, name, refusal, tool_calls: calls, function_call: functionCall } = message;
  const parts: AssistantPart[] = [...states.reasoningOf(message)];
  if (typeof content === "string") parts.push({ type: "text", text: content });
  else for (const part of content ?? []) parts.push(assistantPartOf(part));
  if (typeof refusal === "string") parts.push({ type: "refusal", refusal });
  for (const call of calls ?? []) {
    const { id } = call;
    const called =
      call.type === "custom"
        ? { name: call.custom.name, arguments: call.custom.input, kind: call.type }
        : { name: call.function.name, arguments: call.function.arguments };
    const state = callStateOf(call);
    parts.push(withMark({ type: "tool-call", id, ...called, ...(state && { state }) }, call));
  }
  if (functionCall) parts.push({ type: "tool-call", id: generatedId(index), ...functionCall });
  const marked = parts.findLastIndex(({ type }) => type === "text" || type === "tool-call");
  const last = parts[marked];
  if (last) parts[marked] = withMark(last, message);
  return { role: "assistant", content: assistantContent(parts), ...named(name) };
}

function assistantPartOf(part: Exclude<ChatRequestContent, string>[number]): AssistantPart {
  return part.type === "refusal"
    ? { type: "refusal", refusal: part.refusal }
    : withMark({ type: "text", text: part.type === "text" ? part.text : "" }, part);
}

/** The content of a message; a mark of the prompt cache at the message itself is one at its last part. */
function markedContent(message: Extract<ChatRequestMessage, { role: "system" | "developer" | "user" }>): Content {
  const content = neutralContent(message.content);
  const cacheMinutes = cacheMinutesOf(message);
  if (cacheMinutes === undefined) return content;
  if (typeof content === "string") return [{ type: "text", text: content, cacheMinutes }];
  return content.map((part, at) =>
    at === content.length - 1 && part.type !== "refusal" ? { ...part, cacheMinutes } : part,
  );
}

function neutralContent(content: ChatRequestContent | null | undefined): Content {
  if (content === null || content === undefined) return "";
  return typeof content === "string" ? content : content.map((part) => withMark(neutralPart(part), part));
}

function neutralPart(part: Exclude<ChatRequestContent, string>[number]): ContentPart {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "refusal":
      return { type: "refusal", refusal: part.refusal };
    case "image_url": {
      const { url, detail = null } = typeof part.image_url === "string" ? { url: part.image_url } : part.image_url;
      return { type: "image", url, ...(detail !== null && { detail }) };
    }
    case "input_audio":
      return { type: "audio", ...part.input_audio };
    case "file":
      return neutralFile(part.file);
  }
}

function neutralFile({ filename, file_data: data, file_id: id }: z.infer<typeof fileContentPart>["file"]): FilePart {
  return {
    type: "file",
    ...(typeof filename === "string" && { name: filename }),
    ...(typeof data === "string" && { data }),
    ...(typeof id === "string" && { id }),
  };
}

function named(name: string | null | undefined): { readonly name?: string } {
  return typeof name === "string" ? { name } : {};
}

/** Returns the id for a call without one (legacy functions). It is the same in every turn, because the index of the message is. */
function generatedId(index: number): string {
  return `call_${String(index).padStart(24, "0")}`;
}

/** The calls of a conversation. */
class CallHistory {
  readonly #draft: RequestDraft;
  readonly #names = new Map<string, string>();
  #lastFunctionCall: string | undefined;

  constructor(draft: RequestDraft) {
    this.#draft = draft;
  }

  /** Records the calls of a message, and returns it. */
  addCalls(message: AssistantMessage, index: number): AssistantMessage {
    for (const { id, name } of assistantCalls(message)) {
      this.#names.set(id, name);
      if (id === generatedId(index)) this.#lastFunctionCall = id;
    }
    return message;
  }

  /** Refuses what OpenAI refuses in the result of a tool: all but texts. */
  checkResult(content: ChatRequestContent | null | undefined, index: number): void {
    if (typeof content !== "object" || content === null || !this.#draft.profile.judgesAsVendor) return;
    for (const [at, { type }] of content.entries())
      if (type !== "text") throw unsupportedEnumValue(`messages[${index}].content[${at}].type`, type, ["text"]);
  }

  /** Returns the name of the tool whose call has this id. */
  toolName(id: string): string | undefined {
    return this.#names.get(id);
  }

  /** Returns the id of the call that a legacy `function` message answers. */
  legacyCallId(name: string, index: number): string {
    const id = this.#lastFunctionCall ?? generatedId(index);
    this.#lastFunctionCall = undefined;
    this.#names.set(id, name);
    return id;
  }
}
