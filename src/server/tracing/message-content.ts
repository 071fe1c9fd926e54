import type { GeneratedChoice, GeneratedPart } from "../../core/accumulate.ts";
import type { FinishReason } from "../../core/events.ts";
import type { AssistantPart, Content, ContentPart, Message } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";

/**
 * What was said, in the form that OpenTelemetry's semantic conventions for generative AI give it (`gen-ai-input-messages.json`,
 * `gen-ai-output-messages.json`). Bytes of images, sounds and files are left out.
 */
export interface ToldMessage {
  readonly role: string;
  readonly parts: readonly ToldPart[];
  readonly finish_reason?: string;
}

type ToldPart = Readonly<Record<string, unknown>> & { readonly type: string };

/** The conversation, or the texts, that a model is given. */
export function inputMessages({ prompt }: GenerationRequest): ToldMessage[] {
  if (prompt.kind === "chat") return prompt.messages.map(toldMessage);
  return prompt.prompts.map((text) => ({
    role: "user",
    parts: [textPart(typeof text === "string" ? text : `${text.length} tokens`)],
  }));
}

/** The model's answers, one for each choice. */
export function outputMessages(choices: readonly GeneratedChoice[]): ToldMessage[] {
  return choices.map(({ parts, finish }) => ({
    role: "assistant",
    parts: parts.flatMap(generatedPart),
    finish_reason: finish ? (finishNames[finish.reason] ?? finish.reason) : "error",
  }));
}

/** Of those that the conventions call otherwise. */
const finishNames: Readonly<Partial<Record<FinishReason, string>>> = {
  "content-filter": "content_filter",
  "tool-calls": "tool_call",
  "function-call": "tool_call",
};

function toldMessage(message: Message): ToldMessage {
  const { role, content } = message;
  if (role === "tool") {
    const response = typeof content === "string" ? content : partsOf(content);
    return { role, parts: [{ type: "tool_call_response", id: message.toolCallId, response }] };
  }
  return { role, parts: content === null ? [] : partsOf(content) };
}

function partsOf(content: Content | readonly AssistantPart[]): ToldPart[] {
  return typeof content === "string" ? [textPart(content)] : content.map(toldPart);
}

function toldPart(part: ContentPart | AssistantPart): ToldPart {
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

function generatedPart(part: GeneratedPart): ToldPart[] {
  switch (part.type) {
    case "text":
      return [textPart(part.text)];
    case "refusal":
      return [textPart(part.refusal)];
    case "reasoning":
      return [{ type: "reasoning", content: part.text === "" ? part.summary.join("\n\n") : part.text }];
    case "tool-call":
      return [callPart(part)];
    case "item":
      return [];
  }
}

function textPart(content: string): ToldPart {
  return { type: "text", content };
}

function callPart({ id, name, arguments: text }: { id: string; name: string; arguments: string }): ToldPart {
  return { type: "tool_call", id, name, arguments: text };
}
