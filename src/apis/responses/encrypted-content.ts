import { readBase64Json } from "../base64-json.ts";
import { BodyCounter } from "../body-counter.ts";

/*
 * `encrypted_content`: text that clients keep and give back unchanged. This server encodes the content and does not encrypt it: its
 * client may read it, and was sent it anyway.
 */

/** Encodes a value as text. `prefix` says what the value is and that this server encoded it. */
export function encodeContent(prefix: string, value: unknown): string {
  let bytes = "";
  for (const byte of new TextEncoder().encode(JSON.stringify(value))) bytes += String.fromCharCode(byte);
  return prefix + btoa(bytes);
}

/** Returns the encoded value, or `undefined` if the text has another prefix or is damaged. `counter`: of the request that contains it. */
export function decodeContent(prefix: string, encoded: string, counter: BodyCounter): unknown {
  return encoded.startsWith(prefix) ? readBase64Json(encoded.slice(prefix.length), counter) : undefined;
}

/** What a model needs of its reasoning to be given it again. */
export interface EncryptedReasoning {
  readonly text: string;
  readonly summary?: readonly string[];
  readonly signature?: string;
  readonly encrypted?: string;
}

const reasoningPrefix = "truewire.1.";

/** Encodes reasoning as the `encrypted_content` of its item. */
export function encryptReasoning(reasoning: EncryptedReasoning): string {
  return encodeContent(reasoningPrefix, reasoning);
}

/** Returns the reasoning of an `encrypted_content`, or null if another server made it or it is damaged. */
export function decryptReasoning(
  encrypted: string,
  counter: BodyCounter = new BodyCounter(),
): EncryptedReasoning | null {
  const reasoning = decodeContent(reasoningPrefix, encrypted, counter);
  return isReasoning(reasoning) ? reasoning : null;
}

function isReasoning(value: unknown): value is EncryptedReasoning {
  if (typeof value !== "object" || value === null || !("text" in value) || typeof value.text !== "string") return false;
  const { summary, signature, encrypted } = value as { [name: string]: unknown };
  return (
    (summary === undefined || (Array.isArray(summary) && summary.every((part) => typeof part === "string"))) &&
    (signature === undefined || typeof signature === "string") &&
    (encrypted === undefined || typeof encrypted === "string")
  );
}
