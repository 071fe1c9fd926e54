import { isObject } from "../../core/json.ts";
import type { ContentPart, FilePart, ImagePart, Message } from "../../core/message.ts";
import type { GenerationRequest, Passthrough } from "../../core/request.ts";
import type { AdaptationName } from "./adaptation-names.ts";
import { isOn, type RequestBody, type ServerProfile } from "./server-profile.ts";

/** A part of a message that a server does not take as it is. */
export interface UnfitPart {
  readonly name: Extract<AdaptationName, "file-text" | "image-data">;
  readonly part: FilePart | ImagePart;
  /** In the client's request: `messages[1].content[0]`. */
  readonly place: string;
}

/**
 * The parts of a conversation that a server with this profile does not take: files where it takes none, images by URL, and images of types
 * or sizes that it may not take. Files with their own text are not among them.
 */
export function unfitParts({ prompt }: GenerationRequest, profile: ServerProfile): readonly UnfitPart[] {
  if (prompt.kind !== "chat") return [];
  const found: UnfitPart[] = [];
  for (const [index, { content, path = `messages[${index}]` }] of prompt.messages.entries()) {
    if (content === null || typeof content === "string") continue;
    for (const [at, part] of content.entries()) {
      const place = `${path}.content[${at}]`;
      if (part.type === "file" && isUnfitFile(part, profile)) found.push({ name: "file-text", part, place });
      if (part.type === "image" && isUnfitImage(part, profile)) found.push({ name: "image-data", part, place });
    }
  }
  return found;
}

function isUnfitFile({ text, data, url }: FilePart, profile: ServerProfile): boolean {
  return profile.files === false && isOn(profile, "file-text") && text === undefined && (data ?? url) !== undefined;
}

function isUnfitImage({ url }: ImagePart, profile: ServerProfile): boolean {
  const { imageUrls, imageTypes, maxImageSide } = profile;
  if (!isOn(profile, "image-data")) return false;
  // Bare base64 of an image is no URL. Everything else is one: `file:` and `//host` are not left to a server that is asked to fetch nothing.
  if (!/^data:/i.test(url)) return imageUrls === false && typeOfBase64(url) === undefined;
  return maxImageSide !== undefined || (imageTypes !== undefined && !imageTypes.includes(typeOfData(url) ?? ""));
}

/** The media type of a data URL's image by its first bytes; the head of the URL is not read. undefined: unknown. */
function typeOfData(url: string): string | undefined {
  const start = url.indexOf(",") + 1;
  return typeOfBase64(url.slice(start, start + 16));
}

/** The media type of an image in base64, by its first bytes. undefined: unknown. */
export function typeOfBase64(data: string): string | undefined {
  try {
    return imageTypeOf(atob(data.slice(0, 16)));
  } catch {
    return undefined;
  }
}

/** The media type of an image; undefined: unknown. `head`: its first 12 bytes, a character each. */
export function imageTypeOf(head: string): string | undefined {
  if (head.startsWith("\x89PNG")) return "image/png";
  if (head.startsWith("\xFF\xD8\xFF")) return "image/jpeg";
  if (/^GIF8[79]a/.test(head)) return "image/gif";
  if (head.startsWith("BM")) return "image/bmp";
  if (head.startsWith("RIFF") && head.slice(8) === "WEBP") return "image/webp";
  if (head.slice(4, 8) === "ftyp") return /avi[fs]/.test(head.slice(8)) ? "image/avif" : "image/heic";
  return /^(?:II\*\0|MM\0\*)/.test(head) ? "image/tiff" : undefined;
}

/** The text that represents a file in a prompt. */
export function textOfFile(name: string | undefined, text: string, isCut: boolean): string {
  const title = name === undefined ? "" : ` name=${JSON.stringify(name)}`;
  return `<file${title}>\n${text}${isCut ? "\n[The rest of the file is left out.]" : ""}\n</file>`;
}

/**
 * Returns the request with these parts in place of others, also in the client's own JSON of a chat request, whose messages and parts have
 * the same positions. The client's JSON of other APIs is dropped.
 */
export function withParts(
  request: GenerationRequest,
  replaced: ReadonlyMap<ContentPart, ContentPart>,
): GenerationRequest {
  const { prompt, passthrough, ...others } = request;
  if (prompt.kind !== "chat" || replaced.size === 0) return request;
  const messages = prompt.messages.map((message) => {
    const { content } = message;
    if (content === null || typeof content === "string" || message.role === "assistant") return message;
    if (!content.some((part) => replaced.has(part as ContentPart))) return message;
    return {
      ...message,
      content: (content as readonly ContentPart[]).map((part) => replaced.get(part) ?? part),
    } as Message;
  });
  return {
    ...others,
    prompt: { ...prompt, messages },
    ...(passthrough?.dialect === "chat" && { passthrough: withChatParts(passthrough, prompt.messages, replaced) }),
  };
}

function withChatParts(
  passthrough: Passthrough,
  messages: readonly Message[],
  replaced: ReadonlyMap<ContentPart, ContentPart>,
): Passthrough {
  const { body } = passthrough;
  const list: unknown = body["messages"];
  if (!Array.isArray(list)) return passthrough;
  const written = list.map((raw: unknown, index): unknown => {
    const own = isObject(raw) ? raw["content"] : undefined;
    const content = messages[index]?.content;
    if (!isObject(raw) || !Array.isArray(own) || !Array.isArray(content)) return raw;
    const parts = own.map((part: unknown, at): unknown => {
      const other = replaced.get((content as readonly ContentPart[])[at] as ContentPart);
      return other ? chatPart(other) : part;
    });
    return { ...raw, content: parts };
  });
  return { ...passthrough, body: { ...body, messages: written } };
}

function chatPart(part: ContentPart): RequestBody {
  if (part.type === "text") return { type: "text", text: part.text };
  if (part.type !== "image") throw new TypeError(`A part of type ${part.type} replaces nothing.`);
  const { url, detail } = part;
  return { type: "image_url", image_url: { url, ...(detail !== undefined && { detail }) } };
}

/** An image's bytes and what they are: `image/png`. */
export interface ImageBytes {
  readonly bytes: Uint8Array;
  readonly mediaType: string;
}

const commonTypes: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** Returns the media type by an image's first bytes, or `undefined` if it is not PNG, JPEG, GIF or WebP. */
export function commonImageType(bytes: Uint8Array): string | undefined {
  const type = imageTypeOf(String.fromCharCode(...bytes.subarray(0, 12)));
  return type !== undefined && commonTypes.has(type) ? type : undefined;
}
