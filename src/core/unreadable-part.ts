import { invalidRequest, type FailureError } from "./failure.ts";
import type { AssistantPart, ContentPart, Message } from "./message.ts";

/** Refuses the first part of a conversation that a model cannot take that reads text only. Throws `FailureError` with its path. */
export function requireText(messages: readonly Message[]): void {
  for (const [index, { content, path = `messages[${index}]` }] of messages.entries()) {
    if (typeof content === "string" || content === null) continue;
    for (const [at, part] of content.entries()) {
      const medium = media[part.type];
      const isDocument = part.type === "file" && part.text !== undefined;
      if (medium !== null && !isDocument) throw unreadablePart(medium, `${path}.content[${at}]`, "text");
    }
  }
}

/**
 * What a client is told whose message holds a part that the model cannot take: 400 with code `unsupported_value`. `type` is the
 * part's type on the wire, `path` where it stands, `reads` what the model takes.
 */
export function unreadablePart(type: string, path: string, reads: "text" | "text and images"): FailureError {
  const message =
    reads === "text"
      ? `Invalid content type: this model reads text only, and cannot take a part of type '${type}'.`
      : `This model takes no content part of type '${type}'.`;
  return invalidRequest(message, `${path}.type`, "unsupported_value");
}

/** What is not text, by OpenAI's name; null: it is text, or what a model itself makes. */
const media: Readonly<Record<(ContentPart | AssistantPart)["type"], string | null>> = {
  text: null,
  refusal: null,
  reasoning: null,
  "tool-call": null,
  image: "image_url",
  audio: "input_audio",
  file: "file",
};
