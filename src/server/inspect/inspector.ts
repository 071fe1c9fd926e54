import type { RequestList, RequestSummary } from "../../inspect/inspected-request.ts";
import { Ring } from "../../inspect/ring.ts";
import type { RingPlace } from "../../inspect/ring.ts";
import type { Exchange } from "../exchange.ts";
import type { Mask } from "../mask.ts";
import { plainPath } from "../plain-path.ts";
import { Changes } from "./changes.ts";
import { InspectedExchange } from "./inspected-exchange.ts";
import type { RequestFacts } from "./request-facts.ts";
import { WatchedRequest } from "./watched-request.ts";

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
