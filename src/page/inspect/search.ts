import type { RequestSummary, SearchEnd, SearchResult } from "../../judge/inspect/inspected-request.ts";
import { AdminRefusal, askAdmin, readEvents } from "../api/call-api.ts";
import { Changing } from "../parts/changing.ts";

/** How long to wait for more letters of a query, and for more requests to search. In milliseconds. */
const typingMs = 200;
const againMs = 500;

/** Searches the texts of the requests on the server, and those of new requests when they have ended. */
export class Search extends Changing {
  query = "";
  state: "none" | "searching" | "done" | "failed" = "none";
  /** Why the search failed, in the server's words. */
  message = "";
  /** By the ids of requests. */
  results = new Map<string, SearchResult>();
  /** There may be further results. */
  hasMore = false;
  /** undefined: the list has not come yet. */
  #requests: readonly RequestSummary[] | undefined;
  /** The ids of requests that had ended before they were searched. */
  #searched = new Set<string>();
  #running: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Begins to search, or ends the search for an empty query. */
  find(query: string): void {
    const words = query.trim();
    if (words === this.query) return;
    this.query = words;
    this.#running?.abort();
    clearTimeout(this.#timer);
    this.results = new Map();
    this.hasMore = false;
    this.#searched = new Set();
    this.state = words === "" ? "none" : "searching";
    this.changed();
    if (words !== "") this.#timer = setTimeout(() => void this.#run(), typingMs);
  }

  /** The requests that are listed now, the newest first. Called when the list has come, and when it has changed. */
  see(requests: readonly RequestSummary[]): void {
    const isFirst = this.#requests === undefined;
    this.#requests = requests;
    // The search of an address waits for the list: without it, all that it lists would be searched twice.
    if (isFirst && this.state === "searching") return void this.#run();
    if (this.state !== "done" || this.#notSearched().length === 0) return;
    this.state = "searching";
    this.#timer = setTimeout(() => void this.#run(), againMs);
  }

  #notSearched(): RequestSummary[] {
    return (this.#requests ?? []).filter(({ id, outcome }) => outcome !== "open" && !this.#searched.has(id));
  }

  async #run(): Promise<void> {
    if (!this.#requests) return;
    clearTimeout(this.#timer);
    const running = (this.#running = new AbortController());
    const ended = this.#notSearched();
    // The first search is of all requests, those that are open included.
    const since = this.#searched.size === 0 ? 0 : Math.min(...ended.map(({ number }) => number)) - 1;
    for (const { id } of ended) this.#searched.add(id);
    try {
      const query = new URLSearchParams({ q: this.query, since: String(Math.max(0, since)) });
      const response = await askAdmin(`requests/search?${query.toString()}`, { signal: running.signal });
      for await (const event of readEvents(response)) {
        if (running.signal.aborted) return;
        const result = event as SearchResult | SearchEnd;
        if ("id" in result) this.results.set(result.id, result);
        else this.hasMore ||= result.more === true;
        this.changed();
      }
      this.state = "done";
    } catch (error) {
      if (running.signal.aborted) return;
      this.state = "failed";
      this.message = error instanceof AdminRefusal ? error.message : "The server does not answer.";
    }
    this.changed();
    // Some may have ended while others were searched.
    this.see(this.#requests);
  }
}
