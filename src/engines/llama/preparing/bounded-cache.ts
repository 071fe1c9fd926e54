/** Keeps what was used last: at most so many values, whose weights sum up to at most so much. */
export class BoundedCache<Value> {
  readonly #mostValues: number;
  readonly #mostWeight: number;
  readonly #onDropped: (value: Value) => void;
  /** From the one that was used longest ago to the one that was used last. */
  readonly #entries = new Map<string, { readonly value: Value; readonly weight: number }>();
  #weight = 0;

  constructor(limits: { readonly values: number; readonly weight: number }, onDropped: (value: Value) => void) {
    this.#mostValues = limits.values;
    this.#mostWeight = limits.weight;
    this.#onDropped = onDropped;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** Adds a value under a key that has none. It stays until others need the room, however heavy it is. */
  add(key: string, value: Value, weight: number): void {
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    for (const [oldest, entry] of this.#entries) {
      if (oldest === key || (this.#entries.size <= this.#mostValues && this.#weight <= this.#mostWeight)) return;
      this.#entries.delete(oldest);
      this.#weight -= entry.weight;
      this.#onDropped(entry.value);
    }
  }
}
