import { invalidRequest, type FailureError } from "./failure.ts";
import type { AssistantPart, ContentPart, Message } from "./message.ts";

/** The media that a model takes in addition to text. */
export interface TakenMedia {
  readonly images?: boolean;
  readonly audio?: boolean;
}

/** Throws `FailureError` for the first part of a conversation that a model cannot read. Default: it takes text only. */
export function requireReadable(messages: readonly Message[], takes: TakenMedia = {}): void {
  for (const [index, { content, path = `messages[${index}]` }] of messages.entries()) {
    if (typeof content === "string" || content === null) continue;
    for (const [at, part] of content.entries()) {
      const medium = media[part.type];
      const isDocument = part.type === "file" && part.text !== undefined;
      const isTaken = (part.type === "image" && takes.images) || (part.type === "audio" && takes.audio);
      if (medium === null || isDocument || isTaken) continue;
      throw unsupportedPart(
        medium,
        `${path}.content[${at}]`,
        takes.images ? "text and images" : takes.audio ? "text and audio" : "text",
      );
    }
  }
}

/**
 * The failure for a content part that the model cannot read: 400 with code `unsupported_value`. `type`: the part's type on the wire;
 * `path`: the part's path; `reads`: what the model can read.
 */
export function unsupportedPart(
  type: string,
  path: string,
  reads: "text" | "text and images" | "text and audio",
): FailureError {
  const message =
    reads === "text"
      ? `Invalid content type: this model reads text only, and cannot take a part of type '${type}'.`
      : `This model takes no content part of type '${type}'.`;
  return invalidRequest(message, `${path}.type`, "unsupported_value");
}

/** OpenAI's name for parts that are not text; null: text, or a part that models make. */
const media: Readonly<Record<(ContentPart | AssistantPart)["type"], string | null>> = {
  text: null,
  refusal: null,
  reasoning: null,
  "tool-call": null,
  image: "image_url",
  audio: "input_audio",
  file: "file",
};
