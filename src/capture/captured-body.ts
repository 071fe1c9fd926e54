import type { CapturedResponse } from "./captured-exchange.ts";

/** The text of an answer's body; its characters may be cut anywhere. */
export function bodyOf({ pieces }: CapturedResponse): string {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const texts = pieces.map(({ text = "", base64 }) =>
    decoder.decode(base64 === undefined ? encoder.encode(text) : bytesOf(base64), { stream: true }),
  );
  return texts.join("") + decoder.decode();
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}
