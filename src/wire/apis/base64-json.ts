import type { BodyCounter } from "./body-counter.ts";

/** The number of characters that are decoded at a time: a multiple of four, which are three bytes. */
const chunkLength = 64 * 1024;

/** Encodes bytes in base 64. */
export function base64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** Decodes a valid text in base 64. */
export function bytesOfBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/**
 * Parses a JSON text in base 64 that a client sent within a request; undefined if it is invalid. Its content counts towards the limits of
 * the request's body. Throws `FailureError` 400 as soon as a limit is exceeded.
 */
export function readBase64Json(text: string, counter: BodyCounter): unknown {
  const bytes = bytesOf(withoutBlanks(text), counter);
  // The next text is counted from its start.
  counter.endText();
  try {
    return bytes && (JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as unknown);
  } catch {
    return undefined;
  }
}

const blanks = [" ", "\t", "\n", "\f", "\r"];

/** Removes white space, which `atob` would skip: the chunks would no longer be aligned. */
function withoutBlanks(text: string): string {
  return blanks.some((blank) => text.includes(blank)) ? text.replaceAll(/[ \t\n\f\r]+/g, "") : text;
}

function bytesOf(text: string, counter: BodyCounter): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.ceil((text.length * 3) / 4));
  let length = 0;
  for (let from = 0; from < text.length; from += chunkLength) {
    const binary = decoded(text.slice(from, from + chunkLength));
    if (binary === undefined) return undefined;
    for (let at = 0; at < binary.length; at++) bytes[length + at] = binary.charCodeAt(at);
    counter.add(bytes.subarray(length, (length += binary.length)));
  }
  return bytes.subarray(0, length);
}

function decoded(text: string): string | undefined {
  try {
    return atob(text);
  } catch {
    return undefined;
  }
}
