import type { Format } from "../../../formats/format.ts";
import type { Vocabulary } from "./vocabulary.ts";

/**
 * Tokens that a grammar lets pass though what they show is not what it read:
 *
 * - control tokens: llama.cpp's grammar reads their names, while nothing of them is shown (except of those that a format reads);
 * - a second byte that makes a character longer than it must be (`F0 80`, `E0 80`): the grammar reads the character, a decoder shows
 *   replacement characters.
 */
export class UnseenBytes {
  readonly #vocabulary: Vocabulary;
  readonly #controls = new WeakMap<Format, readonly number[]>();
  readonly #continuing = new Map<number, readonly number[]>();

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  /** What must not follow a token of these bytes. */
  banned(format: Format, bytes: Uint8Array): readonly number[] {
    const controls = this.#hiddenControls(format);
    const limit = overlongBelow.get(bytes.at(-1) ?? 0);
    return limit === undefined ? controls : [...controls, ...this.#continuations(limit)];
  }

  #hiddenControls(format: Format): readonly number[] {
    let hidden = this.#controls.get(format);
    if (hidden === undefined) {
      const written = JSON.stringify(format);
      hidden = this.#vocabulary.tokensThat(
        (token) =>
          this.#vocabulary.isControl(token) &&
          !this.#vocabulary.endsGeneration(token) &&
          !written.includes(JSON.stringify(this.#vocabulary.entry(token)).slice(1, -1)),
      );
      this.#controls.set(format, hidden);
    }
    return hidden;
  }

  /** Tokens that begin with a continuation byte below a limit. */
  #continuations(limit: number): readonly number[] {
    let found = this.#continuing.get(limit);
    if (found === undefined) {
      found = this.#vocabulary.tokensThat((token) => {
        const first = this.#vocabulary.bytes(token)[0] ?? 0;
        return first >= 0x80 && first < limit;
      });
      this.#continuing.set(limit, found);
    }
    return found;
  }
}

/** First byte of a character → the least second byte that it needs (Unicode, table 3-7); the others are left to the grammar. */
const overlongBelow: ReadonlyMap<number, number> = new Map([
  [0xe0, 0xa0],
  [0xf0, 0x90],
]);
