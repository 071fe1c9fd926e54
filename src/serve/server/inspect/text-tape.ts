import type { TapeContents, TimedText } from "../../../judge/inspect/inspected-request.ts";
import { characterBoundary, copied, Tape, textBytes } from "./recorded-text.ts";

export interface TextTapeOptions {
  /** In bytes. */
  readonly limit: number;
  /** The time from which the times of texts count, by `performance.now()`. */
  readonly receivedAt: number;
  /** Called with the number of bytes by which the tape has grown, below 0 if more was dropped. */
  readonly grow: (bytes: number) => void;
}

/** A tape of texts. A tape keeps or drops whole items, so a long text is added in several. */
export class TextTape {
  readonly #tape: Tape<string>;
  readonly #maxLength: number;
  readonly #receivedAt: number;
  readonly #grow: (bytes: number) => void;

  constructor({ limit, receivedAt, grow }: TextTapeOptions) {
    this.#tape = new Tape(limit, textMeasures);
    this.#maxLength = Math.max(16, Math.floor(limit / 32));
    this.#receivedAt = receivedAt;
    this.#grow = grow;
  }

  /** Adds a text with the present time. The tape grows when its text is filed (`fileTexts`). */
  add(text: string): void {
    unfiled.add(this, text);
  }

  /** Puts a text on the tape. `at`: its time, by `performance.now()`. */
  file(at: number, text: string): void {
    const ms = at - this.#receivedAt;
    let grown = 0;
    if (text.length <= this.#maxLength) grown = this.#tape.add(ms, text);
    else
      for (let from = 0; from < text.length;) {
        const end = characterBoundary(text, Math.min(text.length, from + this.#maxLength));
        grown += this.#tape.add(ms, copied(text, from, end));
        from = end;
      }
    if (grown !== 0) this.#grow(grown);
  }

  /** Something was dropped between the beginning and the end. */
  get isCut(): boolean {
    fileTexts();
    return this.#tape.isCut;
  }

  contents(): TapeContents<TimedText> {
    fileTexts();
    return this.#tape.contents((ms, text) => ({ ms: Math.round(ms * 100) / 100, text }));
  }
}

const textMeasures = { bytes: textBytes, characters: ({ length }: string): number => length };

/** The maximum number of texts that are not filed, and of their characters. */
const maxUnfiled = 1024;
const maxUnfiledLength = 256 * 1024;

/**
 * The texts of all tapes that are not filed yet, in the order in which they were added. Every event uses this list, which therefore stays in
 * the processor's caches. A tape of a stream with 50 events a second does not: putting each text on its tape immediately took 2.5 µs more of the
 * 30 µs for an event that is received and sent (64 such streams, two cores).
 */
class UnfiledTexts {
  readonly #tapes: (TextTape | undefined)[] = Array.from({ length: maxUnfiled });
  readonly #texts: string[] = Array.from({ length: maxUnfiled }, () => "");
  readonly #times = new Float64Array(maxUnfiled);
  #count = 0;
  #length = 0;

  add(tape: TextTape, text: string): void {
    const at = this.#count++;
    this.#tapes[at] = tape;
    this.#texts[at] = text;
    this.#times[at] = performance.now();
    this.#length += text.length;
    if (this.#count === maxUnfiled || this.#length > maxUnfiledLength) this.file();
  }

  file(): void {
    const count = this.#count;
    this.#count = 0;
    this.#length = 0;
    for (let at = 0; at < count; at++) {
      const tape = this.#tapes[at];
      const text = this.#texts[at] ?? "";
      this.#tapes[at] = undefined;
      this.#texts[at] = "";
      tape?.file(this.#times[at] ?? 0, text);
    }
  }
}

const unfiled = new UnfiledTexts();

/** Puts all texts on their tapes: before someone looks at what requests have taken, or at one of them. */
export function fileTexts(): void {
  unfiled.file();
}
