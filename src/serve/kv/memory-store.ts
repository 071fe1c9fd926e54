import { ownerOf } from "./store.ts";
import type { Store, StoreLimits, TextEnd } from "./store.ts";

/** A store in memory. Texts are kept as UTF-8, outside of the JavaScript heap. */
export class MemoryStore implements Store {
  readonly #index: BoundedIndex<StoredText>;
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder();

  constructor(limits: StoreLimits) {
    this.#index = new BoundedIndex(limits, ownerOf, () => {});
  }

  async get(key: string): Promise<string | undefined> {
    return (await this.readFrom(key, 0))?.text;
  }

  async readFrom(key: string, from: number): Promise<TextEnd | undefined> {
    const stored = this.#index.get(key);
    if (!stored) return undefined;
    const { chunks, size } = stored;
    // The end is read after each append, so the chunks are searched from there.
    let first = chunks.length;
    let before = size;
    while (first > 0 && before > from) before -= chunks[--first]?.length ?? 0;
    const read = chunks.slice(first);
    const [only] = read;
    const bytes = read.length === 1 && only ? only : joined(read, size - before);
    return { text: this.#decoder.decode(bytes.subarray(Math.max(0, from - before))), size };
  }

  async append(key: string, text: string, creates = false): Promise<boolean> {
    const stored = this.#index.get(key);
    if (!stored) {
      if (creates) await this.set(key, text);
      return false;
    }
    const bytes = this.#encoder.encode(text);
    stored.chunks.push(bytes);
    const size = stored.size + bytes.length;
    this.#index.set(key, { chunks: stored.chunks, size }, size);
    return true;
  }

  async set(key: string, text: string): Promise<void> {
    const bytes = this.#encoder.encode(text);
    this.#index.set(key, { chunks: [bytes], size: bytes.length }, bytes.length);
  }

  async delete(key: string): Promise<boolean> {
    return this.#index.delete(key);
  }

  async close(): Promise<void> {}
}

/** A text in UTF-8: as it was set, and each addition. */
interface StoredText {
  readonly chunks: Uint8Array[];
  readonly size: number;
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

interface Entry<Value> {
  readonly value: Value;
  readonly bytes: number;
  /** When the value was set, by `Date.now`. */
  readonly at: number;
}

/** The values of one owner. */
interface Share<Value> {
  readonly owner: string;
  /** The least recently used first. */
  readonly entries: Map<string, Entry<Value>>;
  bytes: number;
}

/** The interval at which expired values are removed, in milliseconds. They are never returned before that. */
const expiryIntervalMs = 60_000;

/**
 * Values under keys, within limits. If a limit is exceeded, the owner with the most values, or bytes, loses its least recently used value. So
 * an owner loses values only while no other owner has more. `onEvict` is called with the key and the size of each value that is evicted or
 * expired.
 */
export class BoundedIndex<Value> {
  readonly #limits: StoreLimits;
  readonly #ownerOf: (key: string) => string;
  readonly #onEvict: (key: string, bytes: number) => void;
  readonly #shares = new Map<string, Share<Value>>();
  readonly #byCount = new Ranking<Share<Value>>(({ entries }) => entries.size);
  readonly #byBytes = new Ranking<Share<Value>>(({ bytes }) => bytes);
  #count = 0;
  #bytes = 0;
  #lastExpiry = Date.now();

  constructor(limits: StoreLimits, ownerOf: (key: string) => string, onEvict: (key: string, bytes: number) => void) {
    this.#limits = limits;
    this.#ownerOf = ownerOf;
    this.#onEvict = onEvict;
  }

  has(key: string): boolean {
    return this.#shares.get(this.#ownerOf(key))?.entries.has(key) ?? false;
  }

  /** Whether an owner has values. */
  holds(owner: string): boolean {
    return this.#shares.has(owner);
  }

  get(key: string): Value | undefined {
    const entries = this.#shares.get(this.#ownerOf(key))?.entries;
    const entry = entries?.get(key);
    if (!entries || !entry) return undefined;
    if (this.isExpired(entry.at)) {
      this.#evict(key);
      return undefined;
    }
    entries.delete(key);
    entries.set(key, entry);
    return entry.value;
  }

  /** `at`: when the value was set, by `Date.now`. */
  set(key: string, value: Value, bytes: number, at: number = Date.now()): void {
    this.delete(key);
    // A value that exceeds the limit alone must not evict the others first.
    if (bytes > this.#limits.maxBytes) return this.#onEvict(key, bytes);
    this.#add(key, { value, bytes, at });
    this.#removeExpired();
    while (this.#count > this.#limits.maxCount) this.#evictOldestOf(this.#byCount.largest());
    while (this.#bytes > this.#limits.maxBytes) this.#evictOldestOf(this.#byBytes.largest());
  }

  /** Returns whether the value existed. Does not call `onEvict`. */
  delete(key: string): boolean {
    const share = this.#shares.get(this.#ownerOf(key));
    const entry = share?.entries.get(key);
    if (!share || !entry) return false;
    share.entries.delete(key);
    this.#resize(share, -1, -entry.bytes);
    if (share.entries.size === 0) this.#shares.delete(share.owner);
    return true;
  }

  isExpired(at: number): boolean {
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

  #evictOldestOf(share: Share<Value> | undefined): void {
    for (const key of share?.entries.keys() ?? []) return this.#evict(key);
  }

  #evict(key: string): void {
    const bytes = this.#shares.get(this.#ownerOf(key))?.entries.get(key)?.bytes ?? 0;
    if (this.delete(key)) this.#onEvict(key, bytes);
  }

  #removeExpired(): void {
    if (Date.now() - this.#lastExpiry < expiryIntervalMs) return;
    this.#lastExpiry = Date.now();
    for (const { entries } of this.#shares.values())
      for (const [key, { at }] of entries) if (this.isExpired(at)) this.#evict(key);
  }
}

/** The number of members of the largest group that are compared. */
const maxCompared = 64;

/**
 * Finds the member with the largest size in constant time. Members are grouped by the power of two of their size; if the largest group has
 * more than 64 members, the result has at least half of the largest size.
 */
export class Ranking<Member> {
  readonly #sizeOf: (member: Member) => number;
  readonly #groups: Set<Member>[] = [];
  /** Member → the index of its group. */
  readonly #groupOf = new Map<Member, number>();

  constructor(sizeOf: (member: Member) => number) {
    this.#sizeOf = sizeOf;
  }

  /** Called when the size of a member has changed. A member of size 0 is removed. */
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

  /** Returns undefined if every size is 0. */
  largest(): Member | undefined {
    const group = this.#groups.findLast(({ size }) => size > 0);
    let largest: Member | undefined;
    let left = maxCompared;
    for (const member of group ?? []) {
      if (left-- === 0) break;
      if (largest === undefined || this.#sizeOf(member) > this.#sizeOf(largest)) largest = member;
    }
    return largest;
  }
}
