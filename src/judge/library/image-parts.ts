import { commonImageType } from "../../wire/apis/adapt/fit-media.ts";
import type { ImageBytes } from "../../wire/apis/adapt/fit-media.ts";
import type { ContentPart, ImagePart, Message } from "../../wire/core/message.ts";

/** Fetches an image. `downloadImage` is one that is guarded. */
export type DownloadImage = (url: string) => Promise<ImageBytes>;

/**
 * Returns the content part of an image: a URL is kept, bytes become a data URL. Without `mediaType`, it is detected from the bytes:
 * PNG, JPEG, GIF or WebP; throws a TypeError when they do not.
 *
 * @example
 * import { imagePart } from "truewire";
 *
 * console.log(imagePart("https://example.com/cat.png"));
 * // → { type: 'image', url: 'https://example.com/cat.png' }
 * console.log(imagePart(Uint8Array.of(0xff, 0xd8, 0xff, 0xe0)).url);
 * // → data:image/jpeg;base64,/9j/4A==
 */
export function imagePart(
  image: string | URL | Uint8Array,
  options: { readonly mediaType?: string; readonly detail?: string } = {},
): ContentPart {
  const { mediaType, detail } = options;
  const url = image instanceof Uint8Array ? dataUrl(image, mediaType) : String(image);
  return { type: "image", url, ...(detail !== undefined && { detail }) };
}

/**
 * The bytes of a data URL; null if the text is not a valid data URL.
 *
 * @example
 * import { readDataUrl } from "truewire";
 *
 * console.log(readDataUrl("data:image/png;base64,iVBORw=="));
 * // → { bytes: Uint8Array(4) [ 137, 80, 78, 71 ], mediaType: 'image/png' }
 */
export function readDataUrl(url: string): ImageBytes | null {
  const comma = url.indexOf(",");
  if (comma < 0 || !/^data:/i.test(url)) return null;
  const head = url.slice("data:".length, comma);
  const body = url.slice(comma + 1);
  const mediaType = head.split(";")[0]?.trim().toLowerCase() || "text/plain";
  try {
    const text = decodeURIComponent(body);
    if (!/;\s*base64$/i.test(head)) return { bytes: new TextEncoder().encode(text), mediaType };
    return { bytes: Uint8Array.from(atob(text), (character) => character.charCodeAt(0)), mediaType };
  } catch {
    return null;
  }
}

/**
 * Returns the messages with every image at an http(s) URL downloaded by `download` and replaced by a data URL, for models that
 * fetch nothing themselves. Each URL is fetched once. Rejects as `download` does.
 *
 * @example
 * import { imagePart, inlineImages } from "truewire";
 *
 * const messages = [{ role: "user", content: [imagePart("https://example.com/dot.png")] }];
 * const download = async () => ({ bytes: Uint8Array.of(1, 2, 3), mediaType: "image/png" });
 * const [message] = await inlineImages(messages, download);
 * console.log(message.content[0].url);
 * // → data:image/png;base64,AQID
 */
export async function inlineImages(messages: readonly Message[], download: DownloadImage): Promise<Message[]> {
  const fetched = new Map<string, Promise<string>>();
  const inlined = (url: string): Promise<string> => {
    let text = fetched.get(url);
    if (!text) {
      text = download(url).then(({ bytes, mediaType }) => dataUrl(bytes, mediaType));
      fetched.set(url, text);
    }
    return text;
  };
  const inline = async <Part extends { readonly type: string }>(part: Part | ImagePart): Promise<Part | ImagePart> =>
    isImage(part) && /^https?:/i.test(part.url) ? { ...part, url: await inlined(part.url) } : part;
  return Promise.all(
    messages.map(async (message): Promise<Message> => {
      if (message.content === null || typeof message.content === "string") return message;
      if (message.role !== "assistant") return { ...message, content: await Promise.all(message.content.map(inline)) };
      return { ...message, content: await Promise.all(message.content.map(inline)) };
    }),
  );
}

function isImage(part: { readonly type: string }): part is ImagePart {
  return part.type === "image";
}

function dataUrl(bytes: Uint8Array, mediaType: string | undefined): string {
  const type = mediaType ?? commonImageType(bytes);
  if (type === undefined) throw new TypeError("The bytes are no PNG, JPEG, GIF or WebP: say their mediaType.");
  let binary = "";
  // In chunks, since the number of arguments of a call is limited.
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return `data:${type};base64,${btoa(binary)}`;
}
