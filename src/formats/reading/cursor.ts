/**
 * A part of the reading, written as if the whole text were there. It yields where the text runs out and goes on when more has come
 * or the text has ended. So each character is looked at once, whatever the chunks, and the state between them is the place in the code.
 */
export type Reading<T> = Generator<undefined, T, undefined>;

/**
 * The place in the model's text. What was passed but not yet accounted for (`take`) is kept, so that a part that turns out to be no
 * call can still become text.
 */
export class Cursor {
  /** The chunk at hand, behind what had to be kept of the one before. */
  text = "";
  pos = 0;
  /** No more will come. */
  ended = false;
  /** It has ended before its time: what is open stays incomplete. */
  cut = false;
  /** Where a look-ahead began, −1: none. It is kept when the next chunk comes; it must be bounded. */
  keep = -1;
  /**
   * The innermost loop of the reading, while it waits for more: reads what there is, gives whether it wants still more. It stands for
   * resuming the reading, which costs a step through every part that is open.
   */
  pump: (() => boolean) | null = null;
  /** Where what is not accounted for begins; before it, the pile. */
  #from = 0;
  #pile = new Pile();

  feed(chunk: string): void {
    const keep = this.keep < 0 ? this.pos : this.keep;
    if (keep > this.#from) {
      this.#pile.add(this.text.slice(this.#from, keep));
      this.#from = keep;
    }
    this.text = keep === this.text.length ? chunk : this.text.slice(keep) + chunk;
    this.#from -= keep;
    this.pos -= keep;
    if (this.keep >= 0) this.keep = 0;
  }

  /** Repeats `step` while it wants more and more comes. */
  *repeat(step: () => boolean): Reading<void> {
    if (!step()) return;
    const state = { wants: true };
    this.pump = () => (state.wants = step());
    while (state.wants && !this.ended) yield;
    this.pump = null;
  }

  /**
   * The code of the character at hand, −1 at the end of the text, `awaited` where it has not come. `peek` and `skipSpace` wait for it;
   * to ask here first spares a generator, which costs more than the look.
   */
  now(): number {
    if (this.pos < this.text.length) return this.text.charCodeAt(this.pos);
    return this.ended ? -1 : awaited;
  }

  /** Passes the white space at hand. Gives what `now` gives behind it. */
  skipSpaceNow(): number {
    while (this.pos < this.text.length) {
      const code = this.text.charCodeAt(this.pos);
      if (!isSpace(code)) return code;
      this.pos++;
    }
    return this.ended ? -1 : awaited;
  }

  /** Waits for a character; its code, or −1 at the end of the text. The cursor stays before it. */
  *peek(): Reading<number> {
    while (this.pos >= this.text.length) {
      if (this.ended) return -1;
      yield;
    }
    return this.text.charCodeAt(this.pos);
  }

  /** Passes white space. Gives the code after it, −1 at the end. */
  *skipSpace(): Reading<number> {
    for (;;) {
      const code = this.skipSpaceNow();
      if (code !== awaited) return code;
      yield;
    }
  }

  /** How much was passed and not accounted for. */
  get pending(): number {
    return this.#pile.length + this.pos - this.#from;
  }

  /** Accounts for all that was passed, but the last `but` characters. */
  take(but = 0): string {
    const to = this.pos - but;
    if (to >= this.#from) {
      const piece = this.text.slice(this.#from, to);
      this.#from = to;
      if (this.#pile.length === 0) return piece;
      this.#pile.add(piece);
      return this.#pile.take();
    }
    const kept = this.#from - to;
    const pile = this.#pile.take();
    this.#pile.add(pile.slice(pile.length - kept));
    return pile.slice(0, pile.length - kept);
  }

  /** Undoes `take`: this text, which was taken last, is not accounted for after all. */
  giveBack(raw: string): void {
    const later = this.#pile.take();
    this.#pile.add(raw);
    this.#pile.add(later);
  }

  /** What `take` would give, left in place. */
  peekPending(): string {
    return this.#pile.toString() + this.text.slice(this.#from, this.pos);
  }
}

/** Stands for a character that has not come yet. */
export const awaited = -2;

/** The white space that models put between things: JSON's, and form feed and vertical tab. */
export function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13);
}

/** Pieces before a block is joined: joining is linear then, however small the pieces, and no array grows with the characters. */
const blockSize = 512;

/** Text that comes in pieces and is wanted whole, later or never. */
export class Pile {
  length = 0;
  #whole = "";
  /** Behind `#whole`; null: nothing. Most piles have one piece. */
  #pieces: string[] | null = null;

  add(piece: string): void {
    if (piece === "") return;
    if (this.length === 0) this.#whole = piece;
    else if (this.#pieces === null) this.#pieces = [piece];
    else if (this.#pieces.push(piece) === blockSize) this.#join();
    this.length += piece.length;
  }

  #join(): void {
    if (this.#pieces === null) return;
    this.#whole += this.#pieces.join("");
    this.#pieces = null;
  }

  toString(): string {
    this.#join();
    return this.#whole;
  }

  take(): string {
    const text = this.toString();
    this.clear();
    return text;
  }

  clear(): void {
    this.length = 0;
    this.#whole = "";
    this.#pieces = null;
  }
}
