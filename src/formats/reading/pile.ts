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
