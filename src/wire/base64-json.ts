import type { BodyCounter } from "./body-counter.ts";

/**
 * The value of a JSON text in base 64, which a client gave back within a request; undefined where it is broken. What it holds counts
 * towards what the request may hold. Throws `FailureError` 400 where that is too much.
 */
export function readBase64Json(text: string, counter: BodyCounter): unknown {
  const bytes = bytesOf(text);
  if (!bytes) return undefined;
  counter.add(bytes);
  // The next text begins anew, wherever this one ends.
  counter.endText();
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as unknown;
  } catch {
    return undefined;
  }
}

function bytesOf(text: string): Uint8Array | null {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    return null;
  }
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
