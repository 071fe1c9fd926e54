import { BoundedIndex } from "../kv/bounded-index.ts";
import { ownerOf } from "../kv/store.ts";
import type { Assembled } from "../apis/port-state.ts";

/**
 * What is assembled from stored texts, for all owners. After `maxAgeMs` it is assembled again: then the texts count as asked for, and a
 * text that has made way is missed.
 */
export class AssembledTexts {
  readonly #index = new BoundedIndex<Remembered>(
    { maxCount: 10_000, maxBytes: 64 * 1024 * 1024, maxAgeMs: 5 * 60_000 },
    ownerOf,
    () => {},
  );

  of(owner: string): Assembled {
    return {
      get: (key) => this.#index.get(`${owner} ${key}`)?.value,
      set: (key, value, characters) => {
        const known = this.#index.get(`${owner} ${key}`);
        const at = known?.value === value ? known.at : Date.now();
        // A character takes up to two bytes in memory.
        this.#index.set(`${owner} ${key}`, { value, at }, 2 * characters, at);
      },
      delete: (key) => void this.#index.delete(`${owner} ${key}`),
      unique: () => crypto.randomUUID(),
    };
  }
}

interface Remembered {
  readonly value: object;
  /** When it was first set, by the clock of `Date.now`. */
  readonly at: number;
}
