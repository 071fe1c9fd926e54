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

/** Members that are compared, of those with about the largest size. */
const compared = 64;

/**
 * Finds the member with the largest size in constant time. Members are grouped by the power of two of their size, so where more than 64
 * members are in the largest group, a member with at least half of the largest size may be found instead.
 */
export class Ranking<Member> {
  readonly #sizeOf: (member: Member) => number;
  readonly #groups: Set<Member>[] = [];
  /** Member → the index of its group. */
  readonly #groupOf = new Map<Member, number>();

  constructor(sizeOf: (member: Member) => number) {
    this.#sizeOf = sizeOf;
  }

  /** Called when the size of a member has changed. A member of size 0 is forgotten. */
  update(member: Member): void {
    const size = this.#sizeOf(member);
    const group = size === 0 ? undefined : Math.floor(Math.log2(size));
    const before = this.#groupOf.get(member);
    if (group === before) return;
    if (before !== undefined) this.#groups[before]?.delete(member);
    if (group === undefined) {
      this.#groupOf.delete(member);
      return;
    }
    while (this.#groups.length <= group) this.#groups.push(new Set());
    this.#groups[group]?.add(member);
    this.#groupOf.set(member, group);
  }

  /** Returns undefined where every size is 0. */
  largest(): Member | undefined {
    const group = this.#groups.findLast(({ size }) => size > 0);
    let largest: Member | undefined;
    let left = compared;
    for (const member of group ?? []) {
      if (left-- === 0) break;
      if (largest === undefined || this.#sizeOf(member) > this.#sizeOf(largest)) largest = member;
    }
    return largest;
  }
}
