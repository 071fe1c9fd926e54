/** An object that an `OpenList` can contain; a list changes its `place`. */
export interface Placed {
  /** The index in the list that contains the object; -1 in none. Only one list may contain it. */
  place: number;
}

/**
 * A set of objects that are added and removed all the time, such as the requests that are open. In V8, a `Set` or `Map` that is used like
 * this makes garbage that is expensive: each time its table is copied, the old table refers to the new one, and keeps its members, until
 * the next full collection. So the members of one table after the other, and all that they refer to, are moved to the old generation.
 */
export class OpenList<Item extends Placed> {
  readonly #items: Item[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** Adds an object, unless the list contains it. */
  add(item: Item): void {
    if (item.place !== -1) return;
    item.place = this.#items.length;
    this.#items.push(item);
  }

  /** Removes an object, if the list contains it. */
  delete(item: Item): void {
    const { place } = item;
    if (place === -1) return;
    const last = this.#items.pop();
    if (last !== undefined && last !== item) {
      this.#items[place] = last;
      last.place = place;
    }
    item.place = -1;
  }

  /** Iterates over the objects that the list contains now, in no particular order. They may be removed meanwhile. */
  [Symbol.iterator](): Iterator<Item> {
    return [...this.#items][Symbol.iterator]();
  }
}
