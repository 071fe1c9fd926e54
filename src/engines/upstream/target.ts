import type { UpstreamOptions } from "./options.ts";
import type { OpenTransport, Transport } from "./transport.ts";

/** After so many failures in a row a target gets no requests, if there are others. */
const failuresUntilEjected = 3;
const firstEjectionMs = 2000;
const longestEjectionMs = 60_000;

/** One base URL: its connections, how much it has to do, and whether it works. */
export class Target {
  readonly url: string;
  readonly transport: Transport;
  readonly #basePath: string;
  readonly #query: string;
  /** Requests whose answers are not complete. */
  outstanding = 0;
  #failures = 0;
  #ejections = 0;
  /** 0: in service. Else the time (of `now`) when it is asked again. */
  #ejectedUntil = 0;

  constructor(url: string, options: UpstreamOptions, open: OpenTransport) {
    const base = new URL(url);
    this.url = url;
    this.#query = base.search;
    this.#basePath = base.pathname.replace(/\/+$/, "");
    this.transport = open(base.origin, options);
  }

  /** The path of an endpoint (`/chat/completions`) on this server, with the query that the base URL has. */
  path(endpoint: string): string {
    return this.#basePath + endpoint + this.#query;
  }

  inService(): boolean {
    return this.#ejectedUntil === 0;
  }

  /** Whether an ejected target should be asked again whether it works. */
  isDue(now: number): boolean {
    return this.#ejectedUntil !== 0 && now >= this.#ejectedUntil;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#ejections = 0;
    this.#ejectedUntil = 0;
  }

  /** A failure of the server, not of a request. Returns true when it put the target out of service. */
  failed(now: number): boolean {
    this.#failures++;
    const wasEjected = this.#ejectedUntil !== 0;
    if (!wasEjected && this.#failures < failuresUntilEjected) return false;
    this.#ejectedUntil = now + Math.min(longestEjectionMs, firstEjectionMs * 2 ** this.#ejections);
    this.#ejections++;
    return !wasEjected;
  }
}
