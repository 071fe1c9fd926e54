import { Ranking } from "./ranking.ts";
import type { StoreLimits } from "./store.ts";

interface Entry<Value> {
  readonly value: Value;
  readonly bytes: number;
  /** When it was set, by the clock of `Date.now`. */
  readonly at: number;
}

/** The values of one owner. */
interface Share<Value> {
  readonly owner: string;
  /** In the order of their last use, the least recently used first. */
  readonly entries: Map<string, Entry<Value>>;
  bytes: number;
}

/** What is too old leaves at least so often, in milliseconds, if there is any traffic; it is never found before, either. */
const sweepEvery = 60_000;

/**
 * Values under keys, as many as the limits allow. When there are more, the owner that has most gives way: the value of its that was asked
 * for longest ago leaves. So an owner loses values to others only while no other one has more. `leave` is called with each key whose
 * value makes way or is too old.
 */
export class BoundedIndex<Value> {
  readonly #limits: StoreLimits;
  readonly #ownerOf: (key: string) => string;
  readonly #leave: (key: string) => void;
  readonly #shares = new Map<string, Share<Value>>();
  readonly #byCount = new Ranking<Share<Value>>(({ entries }) => entries.size);
  readonly #byBytes = new Ranking<Share<Value>>(({ bytes }) => bytes);
  #count = 0;
  #bytes = 0;
  #swept = Date.now();

  constructor(limits: StoreLimits, ownerOf: (key: string) => string, leave: (key: string) => void) {
    this.#limits = limits;
    this.#ownerOf = ownerOf;
    this.#leave = leave;
  }

  has(key: string): boolean {
    return this.#shares.get(this.#ownerOf(key))?.entries.has(key) ?? false;
  }

  get(key: string): Value | undefined {
    const entries = this.#shares.get(this.#ownerOf(key))?.entries;
    const entry = entries?.get(key);
    if (!entries || !entry) return undefined;
    if (this.isTooOld(entry.at)) {
      this.#drop(key);
      return undefined;
    }
    entries.delete(key);
    entries.set(key, entry);
    return entry.value;
  }

  /** `at`: when the value was set, by the clock of `Date.now`. */
  set(key: string, value: Value, bytes: number, at: number = Date.now()): void {
    this.delete(key);
    // One that is larger than all may be must not drive out the others first.
    if (bytes > this.#limits.maxBytes) return this.#leave(key);
    this.#add(key, { value, bytes, at });
    this.#sweep();
    while (this.#count > this.#limits.maxCount) this.#dropOldestOf(this.#byCount.largest());
    while (this.#bytes > this.#limits.maxBytes) this.#dropOldestOf(this.#byBytes.largest());
  }

  /** Whether it was there. It does not `leave`. */
  delete(key: string): boolean {
    const share = this.#shares.get(this.#ownerOf(key));
    const entry = share?.entries.get(key);
    if (!share || !entry) return false;
    share.entries.delete(key);
    this.#resize(share, -1, -entry.bytes);
    if (share.entries.size === 0) this.#shares.delete(share.owner);
    return true;
  }

  isTooOld(at: number): boolean {
    return Date.now() - at > this.#limits.maxAgeMs;
  }

  #add(key: string, entry: Entry<Value>): void {
    const owner = this.#ownerOf(key);
    let share = this.#shares.get(owner);
    if (!share) this.#shares.set(owner, (share = { owner, entries: new Map(), bytes: 0 }));
    share.entries.set(key, entry);
    this.#resize(share, 1, entry.bytes);
  }

  #resize(share: Share<Value>, count: number, bytes: number): void {
    share.bytes += bytes;
    this.#count += count;
    this.#bytes += bytes;
    this.#byCount.update(share);
    this.#byBytes.update(share);
  }

  #dropOldestOf(share: Share<Value> | undefined): void {
    for (const key of share?.entries.keys() ?? []) return this.#drop(key);
  }

  #drop(key: string): void {
    if (this.delete(key)) this.#leave(key);
  }

  #sweep(): void {
    if (Date.now() - this.#swept < sweepEvery) return;
    this.#swept = Date.now();
    for (const { entries } of this.#shares.values())
      for (const [key, { at }] of entries) if (this.isTooOld(at)) this.#drop(key);
  }
}
