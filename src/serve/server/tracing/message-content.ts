import type { GeneratedChoice, GeneratedPart } from "../../../wire/core/accumulate.ts";
import type { FinishReason } from "../../../wire/core/events.ts";
import { resultContent, resultText } from "../../../wire/core/hosted-result.ts";
import type { AssistantPart, Content, ContentPart, Message } from "../../../wire/core/message.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";

/**
 * A message in the form of OpenTelemetry's semantic conventions for generative AI (`gen-ai-input-messages.json`,
 * `gen-ai-output-messages.json`), without the bytes of images, audio and files.
 */
export interface TracedMessage {
  readonly role: string;
  readonly parts: readonly TracedPart[];
  readonly finish_reason?: string;
}

type TracedPart = Readonly<Record<string, unknown>> & { readonly type: string };

/** The prompt: a conversation, or texts. */
export function inputMessages({ prompt }: GenerationRequest): TracedMessage[] {
  if (prompt.kind === "chat") return prompt.messages.map(tracedMessage);
  return prompt.prompts.map((text) => ({
    role: "user",
    parts: [textPart(typeof text === "string" ? text : `${text.length} tokens`)],
  }));
}

/** The output, one message for each choice. */
export function outputMessages(choices: readonly GeneratedChoice[]): TracedMessage[] {
  return choices.map(({ parts, finish }) => ({
    role: "assistant",
    parts: parts.flatMap(generatedPart),
    finish_reason: finish ? (finishNames[finish.reason] ?? finish.reason) : "error",
  }));
}

/** Finish reasons that have another name in the conventions. */
const finishNames: Readonly<Partial<Record<FinishReason, string>>> = {
  "content-filter": "content_filter",
  "tool-calls": "tool_call",
  "function-call": "tool_call",
};

function tracedMessage(message: Message): TracedMessage {
  const { role, content } = message;
  if (role === "tool") {
    const response = typeof content === "string" ? content : partsOf(content);
    return { role, parts: [{ type: "tool_call_response", id: message.toolCallId, response }] };
  }
  return { role, parts: content === null ? [] : partsOf(content) };
}

function partsOf(content: Content | readonly AssistantPart[]): TracedPart[] {
  return typeof content === "string" ? [textPart(content)] : content.map(tracedPart);
}

function tracedPart(part: ContentPart | AssistantPart): TracedPart {
  switch (part.type) {
    case "text":
      return textPart(part.text);
    case "refusal":
      return textPart(part.refusal);
    case "reasoning":
      return { type: "reasoning", content: part.text };
    case "tool-call":
      return callPart(part);
    case "image":
      return part.url.startsWith("data:")
        ? { type: "blob", modality: "image" }
        : { type: "uri", modality: "image", uri: part.url };
    case "audio":
      return { type: "blob", modality: "audio" };
    case "file":
      return part.text === undefined ? { type: "file", file_id: part.id ?? part.name ?? "" } : textPart(part.text);
  }
}

function generatedPart(part: GeneratedPart): TracedPart[] {
  switch (part.type) {
    case "text":
      return [textPart(part.text)];
    case "refusal":
      return [textPart(part.refusal)];
    case "reasoning":
      return [{ type: "reasoning", content: part.text === "" ? part.summary.join("\n\n") : part.text }];
    case "tool-call":
      return [callPart(part)];
    case "hosted-call":
      return [callPart(part)];
    case "hosted-result":
      return [{ type: "tool_call_response", id: part.id, response: resultText(resultContent(part.result)) }];
    case "hosted-functions":
    case "hosted-approval":
    case "item":
      return [];
  }
}

function textPart(content: string): TracedPart {
  return { type: "text", content };
}

function callPart({ id, name, arguments: text }: { id: string; name: string; arguments: string }): TracedPart {
  return { type: "tool_call", id, name, arguments: text };
}
