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
