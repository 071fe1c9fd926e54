/**
 * What waits, a line for each owner; the lines have their turns one after the other. Who comes while another owner's hundred wait is
 * behind one of them, not behind all. Without owners it is one line: first come, first served.
 */
export class FairQueue<Item> {
  /** In the order of their turns. None is empty. */
  readonly #lines = new Map<string, Item[]>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** How many of one owner wait. */
  lengthOf(owner = ""): number {
    return this.#lines.get(owner)?.length ?? 0;
  }

  push(item: Item, owner = ""): void {
    this.#length++;
    const line = this.#lines.get(owner);
    if (line) line.push(item);
    else this.#lines.set(owner, [item]);
  }

  /** All, in the order in which they would be taken. */
  *[Symbol.iterator](): Iterator<Item> {
    const lines = [...this.#lines.values()];
    for (let at = 0; ; at++) {
      let found = false;
      for (const line of lines) {
        const item = line[at];
        if (item === undefined) continue;
        found = true;
        yield item;
      }
      if (!found) return;
    }
  }

  /** Takes the next one; undefined: nobody waits. */
  shift(): Item | undefined {
    for (const [owner, line] of this.#lines) {
      const [item] = line;
      this.#remove(owner, line, 0, true);
      return item;
    }
    return undefined;
  }

  /** Takes one of them, which was its owner's turn. */
  take(item: Item): void {
    this.#find(item, true);
  }

  /** Takes out one that waits no more: its owner keeps its turn. */
  drop(item: Item): void {
    this.#find(item, false);
  }

  /** The same of all that are unwanted; whether there were some. */
  dropWhere(isUnwanted: (item: Item) => boolean): boolean {
    const unwanted = [...this].filter(isUnwanted);
    for (const item of unwanted) this.drop(item);
    return unwanted.length > 0;
  }

  #find(item: Item, ownersTurn: boolean): void {
    for (const [owner, line] of this.#lines) {
      const at = line.indexOf(item);
      if (at !== -1) return this.#remove(owner, line, at, ownersTurn);
    }
  }

  #remove(owner: string, line: Item[], at: number, ownersTurn: boolean): void {
    line.splice(at, 1);
    this.#length--;
    if (ownersTurn || line.length === 0) this.#lines.delete(owner);
    if (ownersTurn && line.length > 0) this.#lines.set(owner, line);
  }
}
