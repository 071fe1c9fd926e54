import type { RequestList, RequestSummary } from "../../inspect/inspected-request.ts";
import { plainPath } from "../exchange.ts";
import type { Exchange } from "../exchange.ts";
import { InspectedExchange } from "./inspected-exchange.ts";
import { WatchedRequest } from "./watched-request.ts";
import type { RequestFacts } from "./watched-request.ts";
import type { Mask } from "../mask.ts";

/** Each text or list of a request may take this share of all the room: a request has room for ten and a half, whatever it is. */
const share = 1 / 16;

/**
 * Paths, as routes have them, of the page, of programs that look whether all is well, and of whoever runs the server: no client's. What is
 * posted there may hold a key of another server (`/admin/check`).
 */
const unwatched = /^(?:\/(?:admin|page|health|metrics)(?:\/.*)?)?$/;

/** Keeps the last requests of a server in memory, to be looked at. */
export class Inspector {
  readonly #ring: Ring<WatchedRequest>;
  readonly #open = new Set<Changes>();
  #count = 0;

  constructor(maxBytes: number) {
    this.#ring = new Ring(maxBytes);
  }

  get maxBytes(): number {
    return this.#ring.maxBytes;
  }

  /** What follows the request, and the exchange to answer in its place; undefined: it is none to be looked at. */
  watch(
    exchange: Exchange,
    id: string,
    facts: RequestFacts,
    mask: Mask,
  ): { readonly watched: WatchedRequest; readonly exchange: Exchange } | undefined {
    const { method, path } = exchange;
    if (method === "OPTIONS" || unwatched.test(plainPath(path))) return undefined;
    // The page asks which models there are; what it asks of them is of interest.
    if (method === "GET" && exchange.header("sec-fetch-site") === "same-origin") return undefined;
    // Counted from the first byte, so the place is needed before there is anything to put there.
    const unplaced: { place?: RingPlace<WatchedRequest>; bytes: number } = { bytes: 0 };
    const watched: WatchedRequest = new WatchedRequest({
      id,
      number: ++this.#count,
      method,
      path,
      headers: exchange.headers(),
      facts,
      mask,
      limit: this.maxBytes * share,
      grow: (bytes) => {
        if (unplaced.place) this.#ring.grow(unplaced.place, bytes);
        else unplaced.bytes += bytes;
      },
      changed: () => {
        for (const changes of this.#open) changes.add(watched);
      },
    });
    unplaced.place = this.#ring.add(watched);
    this.#ring.grow(unplaced.place, unplaced.bytes);
    for (const changes of this.#open) changes.add(watched);
    return { watched, exchange: new InspectedExchange(exchange, watched) };
  }

  list(wanted: (summary: RequestSummary) => boolean): RequestList {
    const requests = [...this.#ring.values()].map((watched) => watched.summary()).filter(wanted);
    return { requests, bytes: this.#ring.bytes, max_bytes: this.maxBytes, dropped: this.#ring.dropped };
  }

  find(id: string): WatchedRequest | undefined {
    for (const watched of this.#ring.values()) if (watched.id === id) return watched;
    return undefined;
  }

  /** The requests that begin, go on or end from now on, until the iteration is left. */
  changes(): Changes {
    const changes = new Changes(() => this.#open.delete(changes));
    this.#open.add(changes);
    return changes;
  }
}

/** Changes that come within this time are told together, in milliseconds. */
const pauseMs = 100;

/** What has changed since it was told last, each request once. */
export class Changes implements AsyncIterableIterator<readonly RequestSummary[]> {
  readonly #left: () => void;
  #changed = new Set<WatchedRequest>();
  #wake: (() => void) | undefined;
  #isLeft = false;

  /** `left`: called when nobody listens any more. */
  constructor(left: () => void) {
    this.#left = left;
  }

  add(request: WatchedRequest): void {
    this.#changed.add(request);
    this.#wake?.();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<readonly RequestSummary[], undefined>> {
    while (this.#changed.size === 0 && !this.#isLeft) await new Promise<void>((resolve) => (this.#wake = resolve));
    if (!this.#isLeft) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    if (this.#isLeft) return { done: true, value: undefined };
    const changed = [...this.#changed];
    this.#changed = new Set();
    return { done: false, value: changed.map((request) => request.summary()) };
  }

  async return(): Promise<IteratorResult<readonly RequestSummary[], undefined>> {
    this.#isLeft = true;
    this.#left();
    this.#wake?.();
    return { done: true, value: undefined };
  }
}

/** One thing in a ring, with what it takes. */
export interface RingPlace<T> {
  readonly value: T;
  /** In bytes, as counted so far. */
  readonly bytes: number;
}

interface Place<T> extends RingPlace<T> {
  bytes: number;
  isGone: boolean;
}

/** Keeps the newest things, as many as have room: they may grow, and the oldest go first. */
export class Ring<T> {
  readonly maxBytes: number;
  /** The oldest first. */
  readonly #places = new Set<Place<T>>();
  #bytes = 0;
  #dropped = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** What all take together; at most `maxBytes`. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How many had to go. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Takes a thing in, which takes no room yet. */
  add(value: T): RingPlace<T> {
    const place: Place<T> = { value, bytes: 0, isGone: false };
    this.#places.add(place);
    return place;
  }

  /** The thing takes so many bytes more (below 0: less). One that is gone takes none. */
  grow(place: RingPlace<T>, bytes: number): void {
    const grown = place as Place<T>;
    if (grown.isGone) return;
    grown.bytes += bytes;
    this.#bytes += bytes;
    for (const oldest of this.#places) {
      if (this.#bytes <= this.maxBytes) return;
      this.#drop(oldest);
    }
  }

  /** The oldest first. */
  *values(): Generator<T> {
    for (const { value } of this.#places) yield value;
  }

  #drop(place: Place<T>): void {
    this.#places.delete(place);
    place.isGone = true;
    this.#bytes -= place.bytes;
    this.#dropped++;
  }
}
