import { invalidRequest, type FailureError } from "./failure.ts";
import type { AssistantPart, ContentPart, Message } from "./message.ts";

/** The media that a model takes in addition to text. */
export interface TakenMedia {
  readonly images?: boolean;
  readonly audio?: boolean;
}

/**
 * Throws `FailureError` for the first part of a conversation that a model cannot read. `takes`: default text only. `imageHint`: a sentence
 * for the refusal of an image, which says how to get a model that takes images.
 */
export function requireReadable(messages: readonly Message[], takes: TakenMedia = {}, imageHint?: string): void {
  for (const [index, { content, path = `messages[${index}]` }] of messages.entries()) {
    if (typeof content === "string" || content === null) continue;
    for (const [at, part] of content.entries()) {
      const medium = media[part.type];
      const isDocument = part.type === "file" && part.text !== undefined;
      const isTaken = (part.type === "image" && takes.images) || (part.type === "audio" && takes.audio);
      if (medium === null || isDocument || isTaken) continue;
      const reads = ["text", ...(takes.images ? ["images"] : []), ...(takes.audio ? ["audio"] : [])];
      const hint = part.type === "image" ? imageHint : undefined;
      throw unsupportedPart(medium, `${path}.content[${at}]`, { reads: reads.join(" and "), hint });
    }
  }
}

/**
 * The failure for a content part that the model cannot read: 400 with code `unsupported_value`. `part`: words for the part, such as "an
 * image"; `path`: its path; `reads`: what the model can read, such as "text and images"; `hint`: a further sentence.
 */
export function unsupportedPart(
  part: string,
  path: string,
  { reads, hint }: { readonly reads: string; readonly hint?: string | undefined },
): FailureError {
  const message = `Invalid content type: this model reads ${reads} only, and cannot take ${part}.`;
  return invalidRequest(hint === undefined ? message : `${message} ${hint}`, `${path}.type`, "unsupported_value");
}

/** The words for parts that are not text, in every API; null: text, or a part that models make. */
const media: Readonly<Record<(ContentPart | AssistantPart)["type"], string | null>> = {
  text: null,
  refusal: null,
  reasoning: null,
  "tool-call": null,
  image: "an image",
  audio: "audio",
  file: "a file",
};
