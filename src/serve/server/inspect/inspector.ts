import type {
  InspectedRequest,
  InspectedRequestList,
  RequestSummary,
  SearchEnd,
  SearchResult,
} from "../../../judge/inspect/inspected-request.ts";
import { cancellable } from "../../../wire/core/cancellable.ts";
import { plainPath } from "../exchange.ts";
import type { HttpExchange } from "../exchange.ts";
import type { Mask } from "../mask.ts";
import type { KnownConversations } from "./conversation.ts";
import { ListedRequest, type RequestFacts } from "./listed-request.ts";
import { type SearchedWords, searchRequest } from "./search.ts";
import { fileTexts } from "./text-tape.ts";
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
/** The same in requests: texts of short requests take little memory, but keeping them costs as much as answering. */
const requestsOfBurst = 500;
const requestsPerSecond = 50;

/**
 * Paths (as routes have them) of the page, of health checks and of the admin API, which are not inspected. A body of `/admin/check` may
 * contain a key of another server.
 */
const unwatched = /^(?:\/(?:admin|page|health|metrics)(?:\/.*)?)?$/;

/** A change of the listed requests: one of them has begun, continued or ended, or all were dropped. */
export type Change = RequestSummary | ClearedRequests;

export type Matches = (summary: RequestSummary) => boolean;

/** Keeps the last requests of a process in memory for inspection. */
export class Inspector {
  readonly #ring: Ring<ListedRequest>;
  readonly #open = new Set<Changes>();
  #lastNumber = 0;
  /** Bytes that texts may take, requests whose texts may be kept, and the time (of `now`) of the last refill. */
  #allowance: number;
  #requestAllowance = requestsOfBurst;
  #refilledAt: number;
  readonly #now: () => number;

  /**
   * @param maxBytes The limit of memory for all requests.
   * @param now A clock in milliseconds.
   */
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
    // The page's own requests for the list of models, and those that resume or stop a stream. Its requests to models are recorded.
    if ((method === "GET" || method === "DELETE") && exchange.header("sec-fetch-site") === "same-origin")
      return undefined;
    let entry: RingEntry<ListedRequest> | undefined;
    const changed = (): void => {
      // Requests that were cleared while they were open are not listed again.
      if (entry && !this.#ring.has(entry)) return;
      for (const changes of this.#open) changes.add(listed);
    };
    const options = { id, number: ++this.#lastNumber, method, path, facts, mask, changed };
    const grow = (bytes: number): void => {
      this.#allowance -= bytes;
      if (entry) this.#ring.grow(entry, bytes);
    };
    const limit = this.maxBytes * share;
    const listed: ListedRequest = this.#allowsTexts(method)
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

  /**
   * Makes the summaries of requests that were not listed before, in turns with other requests. In one turn, those of a burst of 16,000 requests
   * blocked the process for half a second.
   */
  async #prepare(): Promise<void> {
    fileTexts();
    const known: KnownConversations = { sessions: new Map(), conversations: new Map() };
    let until = performance.now() + turnMs;
    // A copy: the ring may drop requests meanwhile.
    const requests = Array.from(this.#ring.values());
    for (const watched of requests) {
      watched.join(known);
      watched.summary();
      if (performance.now() <= until) continue;
      await turn();
      until = performance.now() + turnMs;
    }
    // Further ones may have ended meanwhile.
    this.#joinThreads();
  }

  #allowsTexts(method: string): boolean {
    const now = this.#now();
    const seconds = (now - this.#refilledAt) / 1000;
    this.#allowance = Math.min(this.maxBytes * burstShare, this.#allowance + seconds * this.maxBytes * shareOfSecond);
    this.#requestAllowance = Math.min(requestsOfBurst, this.#requestAllowance + seconds * requestsPerSecond);
    this.#refilledAt = now;
    if (this.#allowance <= 0 || this.#requestAllowance < 1) return false;
    // Requests without a body take little.
    if (method !== "GET") this.#requestAllowance--;
    return true;
  }

  async list(matches: Matches): Promise<InspectedRequestList> {
    await this.#prepare();
    const requests = [...this.#ring.values()].map((request) => request.summary()).filter(matches);
    return { requests, bytes: this.#ring.bytes, max_bytes: this.maxBytes, dropped: this.#ring.dropped };
  }

  /** Drops all requests, those that are open included. Returns their number. */
  async clear(): Promise<number> {
    const cleared = this.#ring.clear();
    for (const changes of this.#open) changes.clear(cleared);
    return cleared;
  }

  /**
   * Searches the texts of the requests that match, the newest first, in turns with other requests. The last value is the end. A caller that
   * returns from the iteration stops the search.
   */
  async *search(words: SearchedWords, matches: Matches): AsyncGenerator<SearchResult | SearchEnd, void> {
    let [searched, found] = [0, 0];
    let until = performance.now() + turnMs;
    for (const request of (await this.#chosen(matches)).reverse()) {
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
  async *shown(matches: Matches): AsyncGenerator<InspectedRequest, void> {
    for (const request of await this.#chosen(matches)) {
      yield request.shown();
      await turn();
    }
  }

  async #chosen(matches: Matches): Promise<ListedRequest[]> {
    await this.#prepare();
    return [...this.#ring.values()].filter((watched) => matches(watched.summary()));
  }

  async find(id: string): Promise<InspectedRequest | undefined> {
    for (const watched of this.#ring.values()) if (watched.id === id) return watched.shown();
    return undefined;
  }

  /** The requests that begin, continue or end from now on. The iteration is endless: return from it. */
  changes(): AsyncIterableIterator<readonly Change[]> {
    const show = (changed: readonly ListedRequest[]): RequestSummary[] => {
      this.#joinThreads();
      return changed.map((request) => request.summary());
    };
    const changes = new Changes(show);
    this.#open.add(changes);
    return cancellable((signal) => {
      signal.addEventListener("abort", () => this.#open.delete(changes));
      return changes.read();
    });
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

/** The requests that have changed since the last step, each once. If all were dropped, that comes first. */
class Changes {
  readonly #show: (changed: readonly ListedRequest[]) => RequestSummary[];
  #changed = new Set<ListedRequest>();
  #cleared: number | undefined;
  #wake: (() => void) | undefined;

  constructor(show: (changed: readonly ListedRequest[]) => RequestSummary[]) {
    this.#show = show;
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

  async *read(): AsyncGenerator<readonly Change[]> {
    for (;;) {
      while (this.#changed.size === 0 && this.#cleared === undefined)
        await new Promise<void>((resolve) => (this.#wake = resolve));
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      const changed = [...this.#changed];
      this.#changed = new Set();
      const cleared = this.#cleared === undefined ? [] : [{ cleared: this.#cleared }];
      this.#cleared = undefined;
      yield [...cleared, ...this.#show(changed)];
    }
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

  has(entry: RingEntry<T>): boolean {
    return !(entry as MutableEntry<T>).isDropped;
  }

  /** Removes all values, and forgets how many were dropped. Returns their number. */
  clear(): number {
    let cleared = 0;
    for (; this.#oldest; cleared++) this.#drop(this.#oldest);
    this.#dropped = 0;
    return cleared;
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
