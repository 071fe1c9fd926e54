/** What a tape holds, in order. */
export interface TapeContents<T> {
  readonly pieces: readonly T[];
  /** Absent: nothing was left out. */
  readonly left_out?: LeftOut;
}

/** What came between the beginning and the end of a tape, and is not there any more. */
export interface LeftOut {
  /** It came after so many of the pieces that are there. */
  readonly after: number;
  readonly pieces: number;
  /** Of their texts. */
  readonly characters: number;
}

/** The share of the limit that the beginning may take; what comes last has the rest. */
const headShare = 1 / 4;

/** A bounded record of pieces that come one after another: of what is too long, the beginning and the end are kept. */
export class Tape<T> {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head: T[] = [];
  #headBytes = 0;
  #headIsFull = false;
  /** The oldest stands at `#first`; what is before it was left out, and is cleared now and then. */
  #tail: (Kept<T> | undefined)[] = [];
  #first = 0;
  #tailBytes = 0;
  #leftOut = { pieces: 0, characters: 0 };

  /** `limit`: in bytes. */
  constructor(limit: number) {
    this.#headLimit = limit * headShare;
    this.#tailLimit = limit - this.#headLimit;
  }

  /** What it holds, in bytes; at most the limit. */
  get bytes(): number {
    return this.#headBytes + this.#tailBytes;
  }

  /** Returns by how many bytes the tape has grown; below 0 where more was left out. */
  add(piece: T, bytes: number, characters: number): number {
    const before = this.bytes;
    if (!this.#headIsFull && this.#headBytes + bytes <= this.#headLimit) {
      this.#head.push(piece);
      this.#headBytes += bytes;
      return bytes;
    }
    this.#headIsFull = true;
    this.#tail.push({ piece, bytes, characters });
    this.#tailBytes += bytes;
    while (this.#tailBytes > this.#tailLimit) this.#dropOldest();
    return this.bytes - before;
  }

  contents(): TapeContents<T> {
    const pieces = [...this.#head];
    for (const kept of this.#tail) if (kept) pieces.push(kept.piece);
    const { pieces: count, characters } = this.#leftOut;
    return count === 0 ? { pieces } : { pieces, left_out: { after: this.#head.length, pieces: count, characters } };
  }

  #dropOldest(): void {
    const oldest = this.#tail[this.#first];
    if (!oldest) return;
    this.#tail[this.#first++] = undefined;
    this.#tailBytes -= oldest.bytes;
    this.#leftOut.pieces++;
    this.#leftOut.characters += oldest.characters;
    if (this.#first < 1024 || this.#first * 2 < this.#tail.length) return;
    this.#tail = this.#tail.slice(this.#first);
    this.#first = 0;
  }
}

interface Kept<T> {
  readonly piece: T;
  readonly bytes: number;
  readonly characters: number;
}
