const empty = -1;
const smallest = 256;

/**
 * Where each row of `size` tokens of a growing text stood last. A token costs the same however long the text is: the last rows are found
 * by their hash, in a table of places that is compared with the text itself.
 */
export class NGramIndex {
  readonly #text: readonly number[];
  readonly #size: number;
  /** Of each row the place behind it; at most half of it is taken. */
  #table = new Int32Array(smallest).fill(empty);
  #taken = 0;

  /** `text`: read as far as `add` says; it only grows. */
  constructor(text: readonly number[], size: number) {
    this.#text = text;
    this.#size = size;
  }

  /**
   * Takes in the row that ends before a place; each place comes once, in order. Where the same row stood before: the place behind it, the
   * latest one; undefined: nowhere.
   */
  add(end: number): number | undefined {
    if (end < this.#size) return undefined;
    const at = this.#find(end);
    const before = this.#table[at] ?? empty;
    this.#table[at] = end;
    if (before !== empty) return before;
    if (++this.#taken * 2 > this.#table.length) this.#grow();
    return undefined;
  }

  /** Where in the table the row that ends before this place stands, or is to stand. */
  #find(end: number): number {
    const mask = this.#table.length - 1;
    let at = this.#hash(end) & mask;
    for (;;) {
      const other = this.#table[at] ?? empty;
      if (other === empty || this.#isSame(other, end)) return at;
      at = (at + 1) & mask;
    }
  }

  #isSame(a: number, b: number): boolean {
    for (let i = 1; i <= this.#size; i++) if (this.#text[a - i] !== this.#text[b - i]) return false;
    return true;
  }

  #hash(end: number): number {
    let hash = 0;
    for (let i = 1; i <= this.#size; i++) hash = Math.imul(hash ^ (this.#text[end - i] ?? 0), 0x9e3779b1);
    // The lower bits of a product know nothing of its higher ones.
    return hash ^ (hash >>> 15);
  }

  #grow(): void {
    const old = this.#table;
    this.#table = new Int32Array(old.length * 2).fill(empty);
    for (const end of old) if (end !== empty) this.#table[this.#find(end)] = end;
  }
}
