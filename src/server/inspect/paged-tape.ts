import type { TapeContents } from "../../inspect/inspected-request.ts";
import { Tape } from "../../inspect/tape.ts";
import type { Part } from "../../inspect/tape.ts";

/** Pieces that came one after another; `Shown` is a piece as it is shown. */
export interface Page<Piece, Shown> extends Part {
  /** No more has room in it. */
  readonly isFull: boolean;
  /** `bytes`: what the piece takes in memory. */
  add(ms: number, piece: Piece, bytes: number): void;
  /** Nothing more is added, so that it may be kept in another way. */
  close(): void;
  shown(): readonly Shown[];
}

/** A page takes at most this share of a tape's room. Of what is too long, whole pages are left out. */
const share = 1 / 16;
const mostBytes = 32 * 1024;
/** A smaller page stays as it is when no more comes. */
const leastClosed = 4 * 1024;

/** A bounded record of pieces. They are put together in pages, and it is pages that are kept or left out. */
export class PagedTape<Piece, Shown> {
  readonly #tape: Tape<Page<Piece, Shown>>;
  /** What a page may take, in bytes. */
  readonly pageBytes: number;
  readonly #newPage: () => Page<Piece, Shown>;
  /** It is not on the tape yet. */
  #open: Page<Piece, Shown> | undefined;

  /** `limit`: in bytes. */
  constructor(limit: number, newPage: () => Page<Piece, Shown>) {
    this.pageBytes = Math.min(mostBytes, Math.floor(limit * share));
    this.#tape = new Tape(limit - this.pageBytes);
    this.#newPage = newPage;
  }

  /** `bytes`: what the piece takes. Returns by how many bytes the tape has grown; below 0 where more was left out. */
  add(ms: number, piece: Piece, bytes: number): number {
    let page = this.#open;
    if (page && !page.isFull && page.bytes + bytes <= this.pageBytes) {
      page.add(ms, piece, bytes);
      return bytes;
    }
    let grown = this.#close();
    page = this.#newPage();
    page.add(ms, piece, bytes);
    this.#open = page;
    grown += bytes;
    return bytes > this.pageBytes ? grown + this.#close() : grown;
  }

  /** No more comes, as far as is known. */
  end(): void {
    if (this.#open && this.#open.bytes >= leastClosed) this.#open.close();
  }

  /** Nobody wants any of it any more. */
  letGo(): void {
    this.#tape.letGo();
    this.#open?.letGo();
  }

  contents(): TapeContents<Shown> {
    const { pieces, left_out: leftOut } = this.#tape.contents((page) => page.shown());
    const all = [...pieces, ...(this.#open?.shown() ?? [])];
    return leftOut ? { pieces: all, left_out: leftOut } : { pieces: all };
  }

  #close(): number {
    const page = this.#open;
    if (!page) return 0;
    this.#open = undefined;
    page.close();
    return this.#tape.add(page) - page.bytes;
  }
}
