import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { base64url } from "../../wire/apis/turn-seal.ts";

/** Until the key is known: a server that loads its models takes no requests. */
export const noKey: Uint8Array = new Uint8Array(32);

/** Returns the key for `turnSeal` that the secret of an installation makes. */
export function turnKeyOf(secret: string): Uint8Array {
  return hmac(sha256, new TextEncoder().encode(secret), new TextEncoder().encode("truewire turn key"));
}

/** Returns a new secret of an installation: 32 random bytes. */
export function newSecret(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

/**
 * Returns an id of a source: 12 characters that reveal nothing of `text` (the URL and the key of a target) without the key of the
 * installation, and are the same in all its processes.
 */
export function sourceId(key: Uint8Array, text: string): string {
  // A key of its own: no client can make the server compute this code of a text that the client chooses.
  const ownKey = hmac(sha256, key, new TextEncoder().encode("source id"));
  return base64url(hmac(sha256, ownKey, new TextEncoder().encode(text)).subarray(0, 9));
}
