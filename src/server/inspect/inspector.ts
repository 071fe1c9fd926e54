import type {
  InspectedRequest,
  InspectedRequestList,
  RequestSummary,
  SearchEnd,
  SearchResult,
} from "../../inspect/inspected-request.ts";
import { plainPath } from "../exchange.ts";
import type { HttpExchange } from "../exchange.ts";
import type { Mask } from "../mask.ts";
import type { KnownConversations } from "./conversation.ts";
import { ListedRequest, type RequestFacts } from "./listed-request.ts";
import { type SearchedWords, searchRequest } from "./search.ts";
import { WatchedRequest } from "./watched-request.ts";
import { turn } from "../turns.ts";

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
    let entry: RingEntry<ListedRequest> | undefined;
    const changed = (): void => {
      // Requests that were cleared while they were open are not listed again.
      if (entry && !this.#ring.has(entry)) return;
      for (const changes of this.#open) changes.add(listed);
    };
    const options = { id, number: ++this.#count, method, path, facts, mask, changed };
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
    const known: KnownConversations = { sessions: new Map(), conversations: new Map() };
    for (const watched of this.#ring.values()) watched.join(known);
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
    const requests = [...this.#ring.values()].map((request) => request.summary()).filter(matches);
    return { requests, bytes: this.#ring.bytes, max_bytes: this.maxBytes, dropped: this.#ring.dropped };
  }

  /** Drops all requests, those that are open included. Returns their number. */
  clear(): number {
    const cleared = this.#ring.clear();
    for (const changes of this.#open) changes.clear(cleared);
    return cleared;
  }

  /**
   * Searches the texts of the requests that match, the newest first, in turns with other requests. The last value is the end. A caller that
   * returns from the iteration stops the search.
   */
  async *search(
    words: SearchedWords,
    matches: (summary: RequestSummary) => boolean,
  ): AsyncGenerator<SearchResult | SearchEnd, void> {
    let [searched, found] = [0, 0];
    let until = performance.now() + turnMs;
    for (const request of this.#chosen(matches).reverse()) {
      const steps = searchRequest(request, words);
      let step = steps.next();
      while (step.done !== true) {
        if (performance.now() > until) {
          await turn();
          until = performance.now() + turnMs;
        }
        step = steps.next();
      }
      searched++;
      if (step.value === undefined) continue;
      yield step.value;
      if (++found === maxFound) return yield { searched, found, more: true };
    }
    yield { searched, found };
  }

  /** All that is kept of the requests that match, the oldest first, in turns with other requests. */
  async *shown(matches: (summary: RequestSummary) => boolean): AsyncGenerator<InspectedRequest, void> {
    for (const request of this.#chosen(matches)) {
      yield request.shown();
      await turn();
    }
  }

  #chosen(matches: (summary: RequestSummary) => boolean): ListedRequest[] {
    this.#joinThreads();
    return [...this.#ring.values()].filter((watched) => matches(watched.summary()));
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

/** A search lets other requests have their turn after this time, in milliseconds, and ends after this number of results. */
const turnMs = 5;
const maxFound = 1000;

/** Changes within this time are reported together, in milliseconds. */
const delayMs = 100;

/** All requests were dropped. */
export interface ClearedRequests {
  readonly cleared: number;
}

/** The requests that have changed since the last step, each once, after the news that all earlier ones were dropped. */
export class Changes implements AsyncIterableIterator<readonly (RequestSummary | ClearedRequests)[]> {
  readonly #beforeStep: () => void;
  readonly #onReturn: () => void;
  #changed = new Set<ListedRequest>();
  #cleared: number | undefined;
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

  clear(cleared: number): void {
    this.#changed.clear();
    this.#cleared = (this.#cleared ?? 0) + cleared;
    this.#wake?.();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<readonly (RequestSummary | ClearedRequests)[], undefined>> {
    while (this.#changed.size === 0 && this.#cleared === undefined && !this.#hasReturned)
      await new Promise<void>((resolve) => (this.#wake = resolve));
    if (!this.#hasReturned) await new Promise((resolve) => setTimeout(resolve, delayMs));
    if (this.#hasReturned) return { done: true, value: undefined };
    const changed = [...this.#changed];
    this.#changed = new Set();
    const cleared = this.#cleared === undefined ? [] : [{ cleared: this.#cleared }];
    this.#cleared = undefined;
    this.#beforeStep();
    return { done: false, value: [...cleared, ...changed.map((request) => request.summary())] };
  }

  async return(): Promise<IteratorResult<readonly (RequestSummary | ClearedRequests)[], undefined>> {
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
}

/** Keeps the newest values within a limit of bytes. Values may grow; the oldest are dropped first. */
export class Ring<T> {
  readonly maxBytes: number;
  /** The oldest first. */
  readonly #entries = new Set<MutableEntry<T>>();
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
    const entry: MutableEntry<T> = { value, bytes: 0, isDropped: false };
    this.#entries.add(entry);
    return entry;
  }

  /** Adds to the size of a value; `bytes` may be negative. Does nothing for a value that was dropped. */
  grow(entry: RingEntry<T>, bytes: number): void {
    const grown = entry as MutableEntry<T>;
    if (grown.isDropped) return;
    grown.bytes += bytes;
    this.#bytes += bytes;
    for (const oldest of this.#entries) {
      if (this.#bytes <= this.maxBytes) return;
      this.#drop(oldest);
    }
  }

  has(entry: RingEntry<T>): boolean {
    return !(entry as MutableEntry<T>).isDropped;
  }

  /** Removes all values, and forgets how many were dropped. Returns their number. */
  clear(): number {
    const { size } = this.#entries;
    for (const entry of this.#entries) this.#drop(entry);
    this.#dropped = 0;
    return size;
  }

  /** The oldest first. */
  *values(): Generator<T> {
    for (const { value } of this.#entries) yield value;
  }

  #drop(entry: MutableEntry<T>): void {
    this.#entries.delete(entry);
    entry.isDropped = true;
    this.#bytes -= entry.bytes;
    this.#dropped++;
  }
}
