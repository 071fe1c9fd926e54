import { invalidRequest } from "../../core/failure.ts";
import { assistantCalls, assistantContent } from "../../core/message.ts";
import type { AssistantMessage, AssistantPart, Content, ContentPart, FilePart, Message } from "../../core/message.ts";
import { StepCounter } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import type { RequestDraft } from "../request/draft.ts";
import type { fileContentPart } from "./request-schema.ts";
import type { ChatAssistantMessage, ChatRequestContent, ChatRequestMessage } from "./request-types.ts";
import type * as z from "zod";

/**
 * Converts the messages of a chat request to API-neutral messages. The result of a tool gets the name of the tool from the call with the
 * same id. Legacy `function` messages and `function_call`s become tool messages and calls with generated ids.
 */
export function* readMessages(raw: readonly ChatRequestMessage[], draft: RequestDraft): Steps<Message[]> {
  const history = new CallHistory(draft);
  const messages: Message[] = [];
  const pace = new StepCounter();
  for (const [index, message] of raw.entries()) {
    messages.push(neutralMessage(message, index, history));
    if (pace.endsStep(partCount(message))) yield;
  }
  return messages;
}

function partCount(message: ChatRequestMessage): number {
  const calls = message.role === "assistant" ? (message.tool_calls?.length ?? 0) : 0;
  return 1 + calls + (Array.isArray(message.content) ? message.content.length : 0);
}

function neutralMessage(message: ChatRequestMessage, index: number, history: CallHistory): Message {
  switch (message.role) {
    case "system":
    case "developer":
      return { role: message.role, content: neutralContent(message.content), ...named(message.name) };
    case "user":
      return { role: "user", content: neutralContent(message.content), ...named(message.name) };
    case "assistant":
      return history.addCalls(assistantMessage(message, index, history), index);
    case "tool": {
      const name = history.toolName(message.tool_call_id, index) ?? message.name;
      return {
        role: "tool",
        content: neutralContent(message.content),
        toolCallId: message.tool_call_id,
        ...named(name),
      };
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

function assistantMessage(message: ChatAssistantMessage, index: number, history: CallHistory): AssistantMessage {
  const { content = null, name, refusal, tool_calls: calls, function_call: functionCall, audio } = message;
  const parts: AssistantPart[] = [];
  const reasoning = message.reasoning_content ?? message.reasoning;
  if (typeof reasoning === "string") parts.push({ type: "reasoning", text: reasoning });
  if (typeof content === "string") parts.push({ type: "text", text: content });
  else for (const part of content ?? []) parts.push(assistantPartOf(part));
  if (typeof refusal === "string") parts.push({ type: "refusal", refusal });
  for (const call of calls ?? []) {
    const { id } = call;
    const called =
      call.type === "custom"
        ? { name: call.custom.name, arguments: call.custom.input, kind: call.type }
        : { name: call.function.name, arguments: call.function.arguments };
    parts.push({ type: "tool-call", id, ...called });
  }
  if (functionCall) parts.push({ type: "tool-call", id: generatedId(index), ...functionCall });
  const isEmpty = !audio && parts.every(({ type }) => type === "reasoning");
  if (content === null && isEmpty) history.reportNoContent(index);
  return { role: "assistant", content: assistantContent(parts), ...named(name) };
}

function assistantPartOf(part: Exclude<ChatRequestContent, string>[number]): AssistantPart {
  return part.type === "refusal"
    ? { type: "refusal", refusal: part.refusal }
    : { type: "text", text: part.type === "text" ? part.text : "" };
}

function neutralContent(content: ChatRequestContent): Content {
  return typeof content === "string" ? content : content.map((part) => neutralPart(part));
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

/**
 * The calls of a conversation. OpenAI refuses a conversation with a result that has no call, and so does profile `exact`; `lean` warns,
 * because programs cut histories anywhere and templates accept that.
 */
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

  /** Returns the name of the tool whose call has this id. */
  toolName(id: string, index: number): string | undefined {
    const name = this.#names.get(id);
    if (name === undefined) {
      this.#report(
        `messages.[${index}].role`,
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
      );
    }
    return name;
  }

  /** Returns the id of the call that a legacy `function` message answers. */
  legacyCallId(name: string, index: number): string {
    const id = this.#lastFunctionCall ?? generatedId(index);
    this.#lastFunctionCall = undefined;
    this.#names.set(id, name);
    return id;
  }

  /** Reports an assistant message without content, calls, refusal or audio. */
  reportNoContent(index: number): void {
    this.#report(`messages.[${index}].content`, "Invalid value for 'content': expected a string, got null.");
  }

  /** OpenAI's `param` has a dot before the bracket in these errors. */
  #report(param: string, message: string): void {
    if (this.#draft.profile.judgesAsVendor) throw invalidRequest(message, param);
    this.#draft.warnings.push(`${param}: ${message}`);
  }
}
