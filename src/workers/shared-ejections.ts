import type { Peer } from "./peer.ts";

/** Whether a URL receives requests, and, if not, whether a server answers there. */
type UrlState = { readonly inService: true } | { readonly inService: false; readonly answers: boolean };

/** Upstreams with the same URL have states of their own: they may have different keys or certificates. */
interface UrlUpdate {
  readonly upstream: string;
  readonly url: string;
  readonly state: UrlState;
}

/** Shares the states of the URLs of one upstream between all workers. */
interface EjectionsOfUpstream {
  report(url: string, state: UrlState): void;
  /** Calls `heard` for updates of other workers, and first for each URL that is out of service. Returns a function that ends that. */
  listen(heard: (url: string, state: UrlState) => void): () => void;
}

/** In a worker: sends updates of its upstreams to the other workers, through the primary process. */
export class SharedEjections {
  readonly #primary: Peer;
  readonly #listeners = new Set<(update: UrlUpdate) => void>();
  /** The URLs out of service, by upstream and URL. */
  readonly #ejected = new Map<string, UrlUpdate>();

  constructor(primary: Peer) {
    this.#primary = primary;
    primary.onNotification("ejections", (body) => {
      const update = body as UrlUpdate;
      applyUpdate(this.#ejected, update);
      for (const heard of this.#listeners) heard(update);
    });
  }

  /** `upstream` identifies the upstream in all workers. */
  of(upstream: string): EjectionsOfUpstream {
    return {
      report: (url, state) => {
        const update: UrlUpdate = { upstream, url, state };
        applyUpdate(this.#ejected, update);
        this.#primary.notify("ejections", update);
      },
      listen: (heard) => {
        const listener = (update: UrlUpdate): void => {
          if (update.upstream === upstream) heard(update.url, update.state);
        };
        for (const update of this.#ejected.values()) listener(update);
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
    };
  }
}

/** In the primary process: keeps the URLs out of service for workers that start later, and lets one worker probe each URL. */
export class EjectionsOfWorkers {
  readonly #workers = new Set<Peer>();
  readonly #ejected = new Map<string, UrlUpdate>();
  /** The worker that probes a URL: the first one that has reported it out of service. */
  readonly #probing = new Map<string, Peer>();

  join(worker: Peer): void {
    this.#workers.add(worker);
    for (const update of this.#ejected.values()) worker.notify("ejections", update);
    worker.onNotification("ejections", (body) => this.#received(worker, body as UrlUpdate));
    void worker.closed.then(() => {
      this.#workers.delete(worker);
      // The other workers probe its URLs when they receive no updates for a while; the first one that does becomes the prober.
      for (const [key, probing] of this.#probing) if (probing === worker) this.#probing.delete(key);
    });
  }

  #received(by: Peer, update: UrlUpdate): void {
    applyUpdate(this.#ejected, update);
    const key = keyOf(update);
    const probing = this.#probing.get(key) ?? by;
    if (update.state.inService) this.#probing.delete(key);
    else this.#probing.set(key, probing);
    // Two workers have ejected the URL at the same time: the first one probes it.
    if (!update.state.inService && probing !== by) return by.notify("ejections", update);
    for (const worker of this.#workers) if (worker !== by) worker.notify("ejections", update);
  }
}

function applyUpdate(ejected: Map<string, UrlUpdate>, update: UrlUpdate): void {
  if (update.state.inService) ejected.delete(keyOf(update));
  else ejected.set(keyOf(update), update);
}

function keyOf({ upstream, url }: UrlUpdate): string {
  return JSON.stringify([upstream, url]);
}
