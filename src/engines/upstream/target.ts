import type { UpstreamOptions } from "./options.ts";
import type { OpenTransport, Transport } from "./transport.ts";

/** After so many failures in a row a target gets no requests, if there are others. */
const failuresUntilEjected = 3;
/** How long until it is looked at, and looked at again: as soon as it works it is used. */
const ejectionMs = 2000;
/** The same where another process looks at it: longer than its probes are apart and take. */
const watchedElsewhereMs = 15_000;

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

  /** Ends a probe. Returns true when the target is out of service still: meanwhile a request may have been answered. */
  endProbe(answers: boolean, now: number): boolean {
    this.#probing = false;
    if (this.inService() || answers) return false;
    this.#answers = false;
    this.#ejectUntil(now + ejectionMs);
    return true;
  }

  /** Returns true when that put the target in service again. */
  succeeded(): boolean {
    const wasEjected = !this.inService();
    this.#failures = 0;
    this.#ejectedUntil = 0;
    this.#answers = true;
    return wasEjected;
  }

  /** A failure of the server, not of a request. Returns true when it put the target out of service. */
  failed(now: number, answers: boolean): boolean {
    this.#failures++;
    const wasEjected = !this.inService();
    if (!wasEjected && this.#failures < failuresUntilEjected) return false;
    this.#answers = answers;
    this.#ejectUntil(now + ejectionMs);
    return !wasEjected;
  }

  /** Another process has put it out of service, or finds it so still. */
  failedElsewhere(now: number, answers: boolean): void {
    this.#answers = answers;
    this.#ejectUntil(now + watchedElsewhereMs);
  }

  #ejectUntil(time: number): void {
    this.#ejectedUntil = Math.max(this.#ejectedUntil, time);
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
