/**
 * A queue with a line for each owner. Owners take turns, so a new owner's item waits for one item of each other owner, not for all. Without
 * owners it is first in, first out.
 */
export class FairQueue<Item> {
  /** In the order of their turns. No line is empty. */
  readonly #lines = new Map<string, Item[]>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The number of an owner's items. */
  lengthOf(owner = ""): number {
    return this.#lines.get(owner)?.length ?? 0;
  }

  push(item: Item, owner = ""): void {
    this.#length++;
    const line = this.#lines.get(owner);
    if (line) line.push(item);
    else this.#lines.set(owner, [item]);
  }

  /** Iterates over all items in the order in which they would be taken. */
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

  /** Takes the next item; undefined if the queue is empty. */
  shift(): Item | undefined {
    for (const [owner, line] of this.#lines) {
      const [item] = line;
      this.#remove(owner, line, 0, true);
      return item;
    }
    return undefined;
  }

  /** Takes an item, which uses its owner's turn. */
  take(item: Item): void {
    this.#find(item, true);
  }

  /** Removes an item. Its owner keeps its turn. */
  drop(item: Item): void {
    this.#find(item, false);
  }

  /** Removes all unwanted items, and returns whether there were any. */
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
