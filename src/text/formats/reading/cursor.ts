/**
 * A resumable parser: it is written as if the whole text were available, yields when the input runs out, and is resumed when the next
 * chunk has arrived or the text has ended. So every character is examined once, however the text is cut into chunks.
 */
export type Parser<T> = Generator<undefined, T, undefined>;

/** Returned in place of a character code when the next character has not arrived yet. */
export const notYet = -2;

/**
 * The position in the model's text. Text that was passed but not consumed (`take`) is kept, so that what turns out not to be a call can
 * still become visible text.
 */
export class Cursor {
  /** The current chunk, preceded by the part of the previous one that had to be kept. */
  text = "";
  pos = 0;
  /** No more text will arrive. */
  ended = false;
  /** The text was cut off (finish reason "length"): what is open stays incomplete. */
  cut = false;
  /** Start of a look-ahead, or −1. It survives the next `feed`, so a look-ahead must be bounded. */
  keep = -1;
  /**
   * The innermost loop of the parser while it waits for input: processes what is available and returns whether it wants more. Calling it
   * replaces resuming the parser, which costs a step through every open generator.
   */
  pump: (() => boolean) | null = null;
  /** Start of the unconsumed text within `text`; what precedes it is in the buffer. */
  #from = 0;
  #buffer = new TextBuffer();

  feed(chunk: string): void {
    const keep = this.keep < 0 ? this.pos : this.keep;
    if (keep > this.#from) {
      this.#buffer.add(this.text.slice(this.#from, keep));
      this.#from = keep;
    }
    this.text = keep === this.text.length ? chunk : this.text.slice(keep) + chunk;
    this.#from -= keep;
    this.pos -= keep;
    if (this.keep >= 0) this.keep = 0;
  }

  /** Calls `step` for each chunk until it returns false or the text ends. */
  *repeat(step: () => boolean): Parser<void> {
    if (!step()) return;
    const state = { wantsMore: true };
    this.pump = () => (state.wantsMore = step());
    while (state.wantsMore && !this.ended) yield;
    this.pump = null;
  }

  /**
   * The code of the current character, −1 at the end of the text, or `notYet`. Hot loops ask here before `peek`, because creating a
   * generator costs more than the look-up.
   */
  code(): number {
    if (this.pos < this.text.length) return this.text.charCodeAt(this.pos);
    return this.ended ? -1 : notYet;
  }

  /** Skips the white space that has arrived. Returns `code()` of what follows it. */
  skipAvailableSpace(): number {
    while (this.pos < this.text.length) {
      const code = this.text.charCodeAt(this.pos);
      if (!isSpace(code)) return code;
      this.pos++;
    }
    return this.ended ? -1 : notYet;
  }

  /** Waits for a character. Returns its code, or −1 at the end of the text, without passing it. */
  *peek(): Parser<number> {
    while (this.pos >= this.text.length) {
      if (this.ended) return -1;
      yield;
    }
    return this.text.charCodeAt(this.pos);
  }

  /** Skips white space. Returns the code of the character after it, or −1 at the end of the text. */
  *skipSpace(): Parser<number> {
    for (;;) {
      const code = this.skipAvailableSpace();
      if (code !== notYet) return code;
      yield;
    }
  }

  /** Skips white space and returns it, at most `max` characters of it. */
  *readSpace(max = Infinity): Parser<string> {
    let space = "";
    for (;;) {
      const code = yield* this.peek();
      if (code < 0 || !isSpace(code)) return space;
      if (space.length < max) space += String.fromCharCode(code);
      this.pos++;
    }
  }

  /** Number of characters passed but not consumed. */
  get pending(): number {
    return this.#buffer.length + this.pos - this.#from;
  }

  /** Consumes and returns the passed text except its last `keep` characters. */
  take(keep = 0): string {
    const to = this.pos - keep;
    if (to >= this.#from) {
      const text = this.text.slice(this.#from, to);
      this.#from = to;
      if (this.#buffer.length === 0) return text;
      this.#buffer.add(text);
      return this.#buffer.take();
    }
    const kept = this.#from - to;
    const text = this.#buffer.take();
    this.#buffer.add(text.slice(text.length - kept));
    return text.slice(0, text.length - kept);
  }

  /** Undoes `take`: `raw`, which was consumed last, becomes pending again. */
  restore(raw: string): void {
    const later = this.#buffer.take();
    this.#buffer.add(raw);
    this.#buffer.add(later);
  }

  /** Moves back by `length` characters of the passed text, however long it is: it will be read again. A search must do so once at most. */
  rewind(length: number): void {
    if (length <= this.pos - this.#from) {
      this.pos -= length;
      return;
    }
    const passed = this.peekPending();
    const to = passed.length - length;
    this.text = passed.slice(to) + this.text.slice(this.pos);
    this.pos = 0;
    this.#from = 0;
    this.#buffer.clear();
    this.#buffer.add(passed.slice(0, to));
  }

  /** Returns what `take` would return, without consuming it. */
  peekPending(): string {
    return this.#buffer.toString() + this.text.slice(this.#from, this.pos);
  }
}

/** Number of chunks that are joined at once: joining stays linear, and no array grows with the number of characters. */
const blockSize = 512;

/** Text that arrives in chunks and is needed as a whole, later or never. */
export class TextBuffer {
  length = 0;
  #joined = "";
  /** Chunks after `#joined`, or null. Most buffers hold one chunk. */
  #chunks: string[] | null = null;

  add(chunk: string): void {
    if (chunk === "") return;
    if (this.length === 0) this.#joined = chunk;
    else if (this.#chunks === null) this.#chunks = [chunk];
    else if (this.#chunks.push(chunk) === blockSize) this.#join();
    this.length += chunk.length;
  }

  #join(): void {
    if (this.#chunks === null) return;
    this.#joined += this.#chunks.join("");
    this.#chunks = null;
  }

  toString(): string {
    this.#join();
    return this.#joined;
  }

  take(): string {
    const text = this.toString();
    this.clear();
    return text;
  }

  clear(): void {
    this.length = 0;
    this.#joined = "";
    this.#chunks = null;
  }
}

/** The white space that models write between tokens: JSON's, form feed and vertical tab. */
export function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13);
}
