import type { UpstreamOptions } from "./options.ts";
import type { OpenTransport, Transport } from "./transport.ts";

/** After so many failures in a row a target gets no requests, if there are others. */
const failuresUntilEjected = 3;
/** How long until it is looked at, and looked at again: as soon as it works it is used. */
const ejectionMs = 2000;

/** One base URL: its connections, its load, and whether it works. */
export class Target {
  /** For people: without credentials, and without the values of its query. */
  readonly url: string;
  readonly transport: Transport;
  readonly #basePath: string;
  readonly #query: string;
  /** Requests whose answers are not complete. */
  outstanding = 0;
  #failures = 0;
  #answers = true;
  #probing = false;
  /** 0: in service. Else the time (of `now`) when it is asked again. */
  #ejectedUntil = 0;

  constructor(url: string, options: UpstreamOptions, open: OpenTransport) {
    const base = new URL(url);
    this.url = shownUrl(url);
    this.#query = base.search;
    this.#basePath = base.pathname.replace(/\/+$/, "");
    this.transport = open(base.origin, options);
  }

  /** The path of an endpoint (`/chat/completions`) on this server, with the query that the base URL has. */
  path(endpoint: string): string {
    const query = endpoint.includes("?") ? this.#query.replace("?", "&") : this.#query;
    return this.#basePath + endpoint + query;
  }

  /** The same for one that stands beside `/v1`, where the base URL ends so. */
  rootPath(endpoint: string): string {
    return this.#basePath.replace(/\/v1$/, "") + endpoint + this.#query;
  }

  inService(): boolean {
    return this.#ejectedUntil === 0;
  }

  /** Whether anybody answers there, if only with errors. What a server says to one client must not make it absent for all. */
  answers(): boolean {
    return this.#answers;
  }

  /** Begins a probe of an ejected target, where one is due. */
  beginProbe(now: number): boolean {
    if (this.#probing || this.#ejectedUntil === 0 || now < this.#ejectedUntil) return false;
    this.#probing = true;
    return true;
  }

  endProbe(answers: boolean, now: number): void {
    this.#probing = false;
    if (answers) this.succeeded();
    else {
      this.#answers = false;
      this.#ejectedUntil = now + ejectionMs;
    }
  }

  succeeded(): void {
    this.#failures = 0;
    this.#ejectedUntil = 0;
    this.#answers = true;
  }

  /** A failure of the server, not of a request. Returns true when it put the target out of service. */
  failed(now: number, answers: boolean): boolean {
    this.#failures++;
    const wasEjected = this.#ejectedUntil !== 0;
    if (!wasEjected && this.#failures < failuresUntilEjected) return false;
    this.#answers = answers;
    this.#ejectedUntil = now + ejectionMs;
    return !wasEjected;
  }
}

/** A URL as logs and messages may show it. */
export function shownUrl(url: string): string {
  const shown = new URL(url);
  const { username, search } = shown;
  shown.username = "";
  shown.password = "";
  shown.search = "";
  const names = [...new URLSearchParams(search).keys()].map((name) => `${name}=[key]`);
  const text = shown.href.replace(/\/$/, "") + (names.length > 0 ? `?${names.join("&")}` : "");
  return username === "" ? text : text.replace("//", "//[key]@");
}
