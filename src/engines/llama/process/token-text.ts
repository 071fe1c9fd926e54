import { invalidRequest } from "../../../core/failure.ts";
import type { Vocabulary } from "./vocabulary.ts";

/**
 * Puts tokens' bytes together to text. A character whose bytes are spread over tokens comes with its last byte; what never becomes a
 * character comes as U+FFFD, each maximal part once, as the WHATWG decoder has it.
 */
export class TokenText {
  #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  /** The text that these bytes complete; "" while a character is open. */
  push(bytes: Uint8Array): string {
    return this.#decoder.decode(bytes, { stream: true });
  }

  /** What is left when nothing follows. */
  end(): string {
    return this.#decoder.decode();
  }
}

/** The bytes of tokens, control tokens included. Throws FailureError for an id that the model does not have. */
export function bytesOf(vocabulary: Vocabulary, tokens: readonly number[]): Buffer {
  for (const token of tokens) checkToken(vocabulary, token, "tokens");
  return Buffer.concat(tokens.map((token) => vocabulary.bytes(token)));
}

/** Throws FailureError, 400, for an id that the model does not have. `param`: where it stood. */
export function checkToken({ size }: Vocabulary, token: number, param: string): void {
  if (token < size) return;
  throw invalidRequest(`Invalid token id: ${token}. This model has ${size} tokens.`, param, "invalid_value");
}
