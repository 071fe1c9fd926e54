import type { TapeContents } from "./inspected-request.ts";

/** How much of a tape's room a piece takes. */
export interface Measures<T> {
  /** What it takes in memory, its place on the tape included. */
  bytes(piece: T): number;
  /** Of its text. */
  characters(piece: T): number;
}

/** The share of the limit that the beginning may take; what comes last has the rest. */
const headShare = 1 / 4;

/**
 * A bounded record of pieces that come one after another: of what is too long, the beginning and the end are kept. Pieces and their times
 * stand in arrays of their own: an object for each piece would be one more for the garbage collector.
 */
export class Tape<T> {
  readonly #measures: Measures<T>;
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head: T[] = [];
  readonly #headTimes: number[] = [];
  #headBytes = 0;
  #headIsFull = false;
  /** The oldest stands at `#first`; what is before it was left out, and is cleared now and then. */
  #tail: T[] = [];
  #tailTimes: number[] = [];
  #first = 0;
  #tailBytes = 0;
  #leftOutPieces = 0;
  #leftOutCharacters = 0;

  /** `limit`: in bytes. */
  constructor(limit: number, measures: Measures<T>) {
    this.#measures = measures;
    this.#headLimit = limit * headShare;
    this.#tailLimit = limit - this.#headLimit;
  }

  /** What it holds, in bytes; at most the limit. */
  get bytes(): number {
    return this.#headBytes + this.#tailBytes;
  }

  /** `ms`: when it came. Returns by how many bytes the tape has grown; below 0 where more was left out. */
  add(ms: number, piece: T): number {
    const bytes = this.#measures.bytes(piece);
    if (!this.#headIsFull && this.#headBytes + bytes <= this.#headLimit) {
      this.#head.push(piece);
      this.#headTimes.push(ms);
      this.#headBytes += bytes;
      return bytes;
    }
    const before = this.#tailBytes;
    this.#headIsFull = true;
    this.#tail.push(piece);
    this.#tailTimes.push(ms);
    this.#tailBytes += bytes;
    while (this.#tailBytes > this.#tailLimit) this.#dropOldest();
    return this.#tailBytes - before;
  }

  /** `show`: what becomes of a piece and its time. */
  contents<U>(show: (ms: number, piece: T) => U): TapeContents<U> {
    const shown = (pieces: readonly T[], times: readonly number[]): U[] =>
      pieces.map((piece, at) => show(times[at] ?? 0, piece));
    const head = shown(this.#head, this.#headTimes);
    const tail = shown(this.#tail.slice(this.#first), this.#tailTimes.slice(this.#first));
    const [pieces, characters] = [this.#leftOutPieces, this.#leftOutCharacters];
    if (pieces === 0) return { pieces: [...head, ...tail] };
    return { pieces: [...head, ...tail], left_out: { after: head.length, pieces, characters } };
  }

  #dropOldest(): void {
    const oldest = this.#tail[this.#first] as T;
    this.#first++;
    this.#tailBytes -= this.#measures.bytes(oldest);
    this.#leftOutPieces++;
    this.#leftOutCharacters += this.#measures.characters(oldest);
    if (this.#first < mostDropped && this.#first < this.#tail.length) return;
    this.#tail = this.#tail.slice(this.#first);
    this.#tailTimes = this.#tailTimes.slice(this.#first);
    this.#first = 0;
  }
}

/** So many pieces that were left out may still be in memory. */
const mostDropped = 256;
