import type { TapeContents, TimedText } from "../../inspect/inspected-request.ts";
import { Tape } from "../../inspect/tape.ts";
import { copied, wholeCharacters } from "./copied.ts";
import { textBytes } from "./text-bytes.ts";

/** A tape of texts. A tape keeps or drops whole pieces, so a long text is added in several. */
export class TextTape {
  readonly #tape: Tape<string>;
  readonly #longest: number;

  /** `limit`: in bytes. */
  constructor(limit: number) {
    this.#tape = new Tape(limit, measures);
    this.#longest = Math.max(16, Math.floor(limit / 32));
  }

  /** Returns by how many bytes the tape has grown. */
  add(ms: number, text: string): number {
    if (text.length <= this.#longest) return this.#tape.add(ms, text);
    let grown = 0;
    for (let from = 0; from < text.length;) {
      const end = wholeCharacters(text, Math.min(text.length, from + this.#longest));
      grown += this.#tape.add(ms, copied(text, from, end));
      from = end;
    }
    return grown;
  }

  contents(): TapeContents<TimedText> {
    return this.#tape.contents(timed);
  }
}

const measures = { bytes: textBytes, characters: ({ length }: string): number => length };

function timed(ms: number, text: string): TimedText {
  return { ms: Math.round(ms * 100) / 100, text };
}
