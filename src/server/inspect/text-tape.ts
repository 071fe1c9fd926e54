import type { TapeContents, TimedText } from "../../inspect/inspected-request.ts";
import { copied, wholeCharacters } from "./copied.ts";
import type { PackedTexts } from "./packed-texts.ts";
import { PagedTape } from "./paged-tape.ts";
import { perText, textBytes } from "./text-bytes.ts";
import { TextPage } from "./text-page.ts";

/** A tape of texts. A page is kept or left out as a whole, so a text that is longer than one is added in several pieces. */
export class TextTape {
  readonly #tape: PagedTape<string, TimedText>;
  readonly #longest: number;

  /** `limit`: in bytes. */
  constructor(limit: number, packedTexts: PackedTexts) {
    this.#tape = new PagedTape(limit, () => new TextPage(packedTexts));
    this.#longest = Math.max(16, Math.floor((this.#tape.pageBytes - perText) / 2));
  }

  /** Returns by how many bytes the tape has grown; below 0 where more was left out. */
  add(ms: number, text: string): number {
    if (text.length <= this.#longest) return this.#tape.add(ms, text, textBytes(text));
    let grown = 0;
    for (let from = 0; from < text.length;) {
      const end = wholeCharacters(text, Math.min(text.length, from + this.#longest));
      const piece = copied(text, from, end);
      grown += this.#tape.add(ms, piece, textBytes(piece));
      from = end;
    }
    return grown;
  }

  /** No more comes, as far as is known. */
  end(): void {
    this.#tape.end();
  }

  /** Nobody wants any of it any more. */
  letGo(): void {
    this.#tape.letGo();
  }

  contents(): TapeContents<TimedText> {
    return this.#tape.contents();
  }
}
