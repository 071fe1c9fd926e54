import type { StoreLimits } from "./store.ts";

interface Entry<Value> {
  readonly value: Value;
  readonly bytes: number;
  /** When it was set, by the clock of `Date.now`. */
  readonly at: number;
}

/** What is too old leaves at least so often, in milliseconds, if there is any traffic; it is never found before, either. */
const sweepEvery = 60_000;

/**
 * Values in the order in which they were last asked for, as many as the limits allow. `leave` is called with each key that makes way
 * for others, or is too old.
 */
export class BoundedIndex<Value> {
  readonly #limits: StoreLimits;
  readonly #leave: (key: string) => void;
  /** The one that was asked for longest ago stands first. */
  readonly #entries = new Map<string, Entry<Value>>();
  #bytes = 0;
  #swept = Date.now();

  constructor(limits: StoreLimits, leave: (key: string) => void) {
    this.#limits = limits;
    this.#leave = leave;
  }

  get count(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (this.isTooOld(entry.at)) {
      this.#drop(key);
      return undefined;
    }
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** `at`: when the value was set, by the clock of `Date.now`. */
  set(key: string, value: Value, bytes: number, at: number = Date.now()): void {
    this.delete(key);
    // One that is larger than all may be must not drive out the others first.
    if (bytes > this.#limits.maxBytes) return this.#leave(key);
    this.#entries.set(key, { value, bytes, at });
    this.#bytes += bytes;
    this.#sweep();
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#limits.maxCount && this.#bytes <= this.#limits.maxBytes) break;
      this.#drop(oldest);
    }
  }

  /** Whether it was there. It does not `leave`. */
  delete(key: string): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#bytes -= entry.bytes;
    return this.#entries.delete(key);
  }

  isTooOld(at: number): boolean {
    return Date.now() - at > this.#limits.maxAgeMs;
  }

  #drop(key: string): void {
    if (this.delete(key)) this.#leave(key);
  }

  #sweep(): void {
    if (Date.now() - this.#swept < sweepEvery) return;
    this.#swept = Date.now();
    for (const [key, { at }] of this.#entries) if (this.isTooOld(at)) this.#drop(key);
  }
}
