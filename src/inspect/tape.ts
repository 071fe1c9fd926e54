import type { TapeContents } from "./inspected-request.ts";

/** Something that is kept or left out as a whole: some pieces that came one after another. */
export interface Part {
  /** What it takes in memory, in bytes. */
  readonly bytes: number;
  /** How many pieces it is. */
  readonly pieces: number;
  /** Of its pieces' texts. */
  readonly characters: number;
  /** It is not kept any more. */
  letGo(): void;
}

/** The share of the limit that the beginning may take; what comes last has the rest. */
const headShare = 1 / 4;

/** A bounded record of what comes one after another: of what is too long, the beginning and the end are kept. */
export class Tape<T extends Part> {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head: T[] = [];
  #headBytes = 0;
  #headIsFull = false;
  readonly #tail = new Set<T>();
  #tailBytes = 0;
  #leftOutPieces = 0;
  #leftOutCharacters = 0;

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
  add(part: T): number {
    const { bytes } = part;
    if (!this.#headIsFull && this.#headBytes + bytes <= this.#headLimit) {
      this.#head.push(part);
      this.#headBytes += bytes;
      return bytes;
    }
    const before = this.#tailBytes;
    this.#headIsFull = true;
    this.#tail.add(part);
    this.#tailBytes += bytes;
    for (const oldest of this.#tail) {
      if (this.#tailBytes <= this.#tailLimit) break;
      this.#leaveOut(oldest);
    }
    return this.#tailBytes - before;
  }

  /** `show`: the pieces of a part. */
  contents<U>(show: (part: T) => readonly U[]): TapeContents<U> {
    const head = this.#head.flatMap(show);
    const all = [...head, ...[...this.#tail].flatMap(show)];
    const [pieces, characters] = [this.#leftOutPieces, this.#leftOutCharacters];
    return pieces === 0 ? { pieces: all } : { pieces: all, left_out: { after: head.length, pieces, characters } };
  }

  /** Nobody wants any of it any more. */
  letGo(): void {
    for (const part of this.#head) part.letGo();
    for (const part of this.#tail) part.letGo();
  }

  #leaveOut(part: T): void {
    this.#tail.delete(part);
    this.#tailBytes -= part.bytes;
    this.#leftOutPieces += part.pieces;
    this.#leftOutCharacters += part.characters;
    part.letGo();
  }
}
