import { BoundedIndex } from "./bounded-index.ts";
import { ownerOf } from "./store.ts";
import type { Store, StoreLimits } from "./store.ts";

/** A store that ends with its process. Texts are kept as UTF-8, outside the heap of the language. */
export class MemoryStore implements Store {
  readonly #index: BoundedIndex<Uint8Array>;
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder();

  constructor(limits: StoreLimits) {
    this.#index = new BoundedIndex(limits, ownerOf, () => {});
  }

  async get(key: string): Promise<string | undefined> {
    const bytes = this.#index.get(key);
    return bytes && this.#decoder.decode(bytes);
  }

  async set(key: string, text: string): Promise<void> {
    const bytes = this.#encoder.encode(text);
    this.#index.set(key, bytes, bytes.length);
  }

  async delete(key: string): Promise<boolean> {
    return this.#index.delete(key);
  }

  async close(): Promise<void> {}
}
