import type { BodyCounter } from "./body-counter.ts";

/** So much is decoded at a time, in characters: a multiple of four, which are three bytes. */
const pieceLength = 64 * 1024;

/**
 * The value of a JSON text in base 64, which a client gave back within a request; undefined where it is broken. What it holds counts
 * towards what the request may hold. Throws `FailureError` 400 as soon as that is too much.
 */
export function readBase64Json(text: string, counter: BodyCounter): unknown {
  const bytes = bytesOf(withoutBlanks(text), counter);
  // The next text begins anew, wherever this one ends.
  counter.endText();
  try {
    return bytes && (JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as unknown);
  } catch {
    return undefined;
  }
}

const blanks = [" ", "\t", "\n", "\f", "\r"];

/** `atob` passes over them; here they would move what follows. */
function withoutBlanks(text: string): string {
  return blanks.some((blank) => text.includes(blank)) ? text.replaceAll(/[ \t\n\f\r]+/g, "") : text;
}

function bytesOf(text: string, counter: BodyCounter): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.ceil((text.length * 3) / 4));
  let length = 0;
  for (let from = 0; from < text.length; from += pieceLength) {
    const binary = decoded(text.slice(from, from + pieceLength));
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
