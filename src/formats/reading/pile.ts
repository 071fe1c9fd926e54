/** Pieces before a block is joined: joining is linear then, however small the pieces, and no array grows with the characters. */
const blockSize = 512;

/** Text that comes in pieces and is wanted whole, later or never. */
export class Pile {
  length = 0;
  #whole = "";
  #pieces: string[] = [];

  add(piece: string): void {
    if (piece === "") return;
    this.length += piece.length;
    this.#pieces.push(piece);
    if (this.#pieces.length === blockSize) this.#join();
  }

  #join(): void {
    this.#whole += this.#pieces.join("");
    this.#pieces = [];
  }

  toString(): string {
    if (this.#pieces.length > 0) this.#join();
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
    this.#pieces = [];
  }
}
