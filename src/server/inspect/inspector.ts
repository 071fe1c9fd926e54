import type { InspectedRequestList, RequestSummary } from "../../inspect/inspected-request.ts";
import { plainPath } from "../exchange.ts";
import type { HttpExchange } from "../exchange.ts";
import type { Mask } from "../mask.ts";
import type { Thread } from "./conversation.ts";
import { ListedRequest, type RequestFacts } from "./listed-request.ts";
import { WatchedRequest } from "./watched-request.ts";

/** The share of the total limit that each text or list of a request may take: a request takes at most ten and a half of them. */
const share = 1 / 16;

/**
 * The shares of the total limit that requests may take in a burst, and in each further second. Beyond that, requests are kept without their
 * texts: these would be dropped for newer ones within seconds, and a server under load would do half its work for them.
 */
const burstShare = 1 / 2;
const shareOfSecond = 1 / 8;

/**
 * Paths (as routes have them) of the page, of health checks and of the admin API, which are not inspected. A body of `/admin/check` may
 * contain a key of another server.
 */
const unwatched = /^(?:\/(?:admin|page|health|metrics)(?:\/.*)?)?$/;

/** Keeps the last requests of a server in memory for inspection. */
export class Inspector {
  readonly #ring: Ring<ListedRequest>;
  readonly #open = new Set<Changes>();
  #count = 0;
  /** Bytes that texts may take, and the time (of `now`) of the last refill. */
  #allowance: number;
  #refilledAt: number;
  readonly #now: () => number;

  /** `now`: a clock in milliseconds. */
  constructor(maxBytes: number, now: () => number = () => performance.now()) {
    this.#ring = new Ring(maxBytes);
    this.#now = now;
    this.#allowance = maxBytes * burstShare;
    this.#refilledAt = now();
  }

  get maxBytes(): number {
    return this.#ring.maxBytes;
  }

  /** Begins to record a request; undefined if requests to its path are not inspected. */
  watch(exchange: HttpExchange, id: string, facts: RequestFacts, mask: Mask): ListedRequest | undefined {
    const { method, path } = exchange;
    if (method === "OPTIONS" || unwatched.test(plainPath(path))) return undefined;
    // The page's own requests for the list of models. Its requests to models are recorded.
    if (method === "GET" && exchange.header("sec-fetch-site") === "same-origin") return undefined;
    const changed = (): void => {
      for (const changes of this.#open) changes.add(listed);
    };
    const options = { id, number: ++this.#count, method, path, facts, mask, changed };
    let entry: RingEntry<ListedRequest> | undefined;
    const grow = (bytes: number): void => {
      this.#allowance -= bytes;
      if (entry) this.#ring.grow(entry, bytes);
    };
    const limit = this.maxBytes * share;
    const listed: ListedRequest = this.#allowsTexts()
      ? new WatchedRequest({ ...options, headers: exchange.headers(), limit, grow })
      : new ListedRequest(options);
    entry = this.#ring.add(listed);
    this.#ring.grow(entry, listed.initialBytes);
    changed();
    return listed;
  }

  /** Finds the conversations of requests. Those that are known already cost little. */
  #joinThreads(): void {
    const threads = new Map<string, Thread>();
    for (const watched of this.#ring.values()) watched.join(threads);
  }

  #allowsTexts(): boolean {
    const now = this.#now();
    const refill = ((now - this.#refilledAt) / 1000) * this.maxBytes * shareOfSecond;
    this.#allowance = Math.min(this.maxBytes * burstShare, this.#allowance + refill);
    this.#refilledAt = now;
    return this.#allowance > 0;
  }

  list(matches: (summary: RequestSummary) => boolean): InspectedRequestList {
    this.#joinThreads();
    const requests = [...this.#ring.values()].map((watched) => watched.summary()).filter(matches);
    return { requests, bytes: this.#ring.bytes, max_bytes: this.maxBytes, dropped: this.#ring.dropped };
  }

  find(id: string): ListedRequest | undefined {
    for (const watched of this.#ring.values()) if (watched.id === id) return watched;
    return undefined;
  }

  /** The requests that begin, continue or end from now on. The iteration is endless: return from it. */
  changes(): Changes {
    const changes = new Changes(
      () => this.#joinThreads(),
      () => this.#open.delete(changes),
    );
    this.#open.add(changes);
    return changes;
  }
}

/** Changes within this time are reported together, in milliseconds. */
const delayMs = 100;

/** The requests that have changed since the last step, each once. */
export class Changes implements AsyncIterableIterator<readonly RequestSummary[]> {
  readonly #beforeStep: () => void;
  readonly #onReturn: () => void;
  #changed = new Set<ListedRequest>();
  #wake: (() => void) | undefined;
  #hasReturned = false;

  constructor(beforeStep: () => void, onReturn: () => void) {
    this.#beforeStep = beforeStep;
    this.#onReturn = onReturn;
  }

  add(request: ListedRequest): void {
    this.#changed.add(request);
    this.#wake?.();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<readonly RequestSummary[], undefined>> {
    while (this.#changed.size === 0 && !this.#hasReturned) await new Promise<void>((resolve) => (this.#wake = resolve));
    if (!this.#hasReturned) await new Promise((resolve) => setTimeout(resolve, delayMs));
    if (this.#hasReturned) return { done: true, value: undefined };
    const changed = [...this.#changed];
    this.#changed = new Set();
    this.#beforeStep();
    return { done: false, value: changed.map((request) => request.summary()) };
  }

  async return(): Promise<IteratorResult<readonly RequestSummary[], undefined>> {
    this.#hasReturned = true;
    this.#onReturn();
    this.#wake?.();
    return { done: true, value: undefined };
  }
}

/** A value in a ring, with its size. */
export interface RingEntry<T> {
  readonly value: T;
  /** Counted so far. */
  readonly bytes: number;
}

interface MutableEntry<T> extends RingEntry<T> {
  bytes: number;
  isDropped: boolean;
  /** The next newer entry. */
  next: MutableEntry<T> | undefined;
}

/** Keeps the newest values within a limit of bytes. Values may grow; the oldest are dropped first. */
export class Ring<T> {
  readonly maxBytes: number;
  /** A list, and no `Set`: the first member of a `Set` from which many were deleted is found slowly. */
  #oldest: MutableEntry<T> | undefined;
  #newest: MutableEntry<T> | undefined;
  #bytes = 0;
  #dropped = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** The size of all values; at most `maxBytes`. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The number of values that were dropped. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Adds a value, of size 0. */
  add(value: T): RingEntry<T> {
    const entry: MutableEntry<T> = { value, bytes: 0, isDropped: false, next: undefined };
    if (this.#newest) this.#newest.next = entry;
    else this.#oldest = entry;
    this.#newest = entry;
    return entry;
  }

  /** Adds to the size of a value; `bytes` may be negative. Does nothing for a value that was dropped. */
  grow(entry: RingEntry<T>, bytes: number): void {
    const grown = entry as MutableEntry<T>;
    if (grown.isDropped) return;
    grown.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > this.maxBytes && this.#oldest) this.#drop(this.#oldest);
  }

  /** The oldest first. */
  *values(): Generator<T> {
    for (let entry = this.#oldest; entry; entry = entry.next) yield entry.value;
  }

  #drop(entry: MutableEntry<T>): void {
    this.#oldest = entry.next;
    if (this.#newest === entry) this.#newest = undefined;
    // An entry that was dropped must not keep others in memory.
    entry.next = undefined;
    entry.isDropped = true;
    this.#bytes -= entry.bytes;
    this.#dropped++;
  }
}
