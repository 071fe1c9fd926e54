import type { PlacedItem } from "./input-items.ts";
import type { StoredItem } from "./stored-response.ts";

/**
 * A list that only grows. `with` is constant time for each new value as long as the list grows in one place: the lists share one array, of
 * which each has a prefix. A second continuation of the same list copies it.
 */
export class GrowingList<T> {
  readonly length: number;
  readonly #array: T[];

  constructor(array: T[] = []) {
    this.#array = array;
    this.length = array.length;
  }

  with(values: readonly T[]): GrowingList<T> {
    const array = this.#array.length === this.length ? this.#array : this.#array.slice(0, this.length);
    for (const value of values) array.push(value);
    return new GrowingList(array);
  }

  /** Returns the values from an index on, followed by others. */
  toArray(from = 0, others: readonly T[] = []): T[] {
    const values = this.#array.slice(from, this.length);
    for (const value of others) values.push(value);
    return values;
  }
}

/** A map that only grows, as `GrowingList` does. */
export class GrowingMap<V> {
  readonly #entries: [key: string, value: V][];
  /** The indexes in `#entries` of each key, in order. Shared as the entries are. */
  readonly #indexes: Map<string, number[]>;
  readonly #length: number;

  constructor(entries: [key: string, value: V][] = [], indexes = new Map<string, number[]>()) {
    this.#entries = entries;
    this.#indexes = indexes;
    this.#length = entries.length;
  }

  with(added: Iterable<[key: string, value: V]>): GrowingMap<V> {
    const isShared = this.#entries.length !== this.#length;
    const entries = isShared ? [] : this.#entries;
    const indexes = isShared ? new Map<string, number[]>() : this.#indexes;
    const add = (entry: [key: string, value: V]): void => {
      const known = indexes.get(entry[0]);
      if (known) known.push(entries.length);
      else indexes.set(entry[0], [entries.length]);
      entries.push(entry);
    };
    if (isShared) for (let at = 0; at < this.#length; at++) add(this.#entries[at] as [string, V]);
    for (const entry of added) add(entry);
    return new GrowingMap(entries, indexes);
  }

  get size(): number {
    return this.#length;
  }

  /** Returns the latest value of the key. */
  get(key: string): V | undefined {
    const indexes = this.#indexes.get(key) ?? [];
    let [low, high] = [0, indexes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((indexes[middle] ?? 0) < this.#length) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? undefined : this.#entries[indexes[low - 1] ?? 0]?.[1];
  }
}

/** The approximate memory of an item, and of what is read from it, in addition to its texts; in characters. */
export const charactersPerItem = 350;

/** The approximate memory of an item (JSON) of a history, in characters. */
export function itemCharacters(item: object): number {
  let sum = charactersPerItem;
  const rest: unknown[] = [item];
  while (rest.length > 0) {
    const value = rest.pop();
    if (typeof value === "string") sum += value.length;
    else if (typeof value === "object" && value !== null) {
      for (const inner of Object.values(value)) rest.push(inner);
      // What was read has its content, too.
      if ("encrypted_content" in value) rest.push(value.encrypted_content);
    }
  }
  return sum;
}

/** The items that precede the input of a request, and what was read from them. */
export class History {
  readonly items: GrowingList<StoredItem>;
  /** The parameter of the request that brings the items. */
  readonly path: string;
  /** What `readInput` has read from the items, by whether the request is forwarded. */
  readonly read = new Map<boolean, object>();
  #before: History | undefined;

  constructor(path: string, items: GrowingList<StoredItem> = new GrowingList(), before?: History) {
    this.path = path;
    this.items = items;
    this.#before = before;
  }

  /** Returns the history with further items. */
  with(items: readonly StoredItem[]): History {
    return new History(this.path, this.items.with(items), this);
  }

  /** Returns the longest beginning of this history from which something was read. */
  lastRead(forwards: boolean): History | undefined {
    let before = this.#before;
    while (before && !before.read.has(forwards)) before = before.#before;
    return before;
  }

  /** Remembers what was read. */
  setRead(forwards: boolean, value: object): void {
    this.read.set(forwards, value);
    // Earlier ones are reached through those that continue them.
    this.#before = undefined;
  }

  placed(from = 0): PlacedItem[] {
    return this.items.toArray(from).map((item) => ({ item, path: this.path, again: true }));
  }
}

export const noHistory = new History("input");
