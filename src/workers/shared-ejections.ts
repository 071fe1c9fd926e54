import type { Peer } from "./peer.ts";

/** Whether a URL gets requests, and whether anybody answers there. */
type UrlState = { readonly inService: true } | { readonly inService: false; readonly answers: boolean };

/** Of two upstreams with the same URL each has its own: one may have another key, or other certificates. */
interface ToldUrl {
  readonly upstream: string;
  readonly url: string;
  readonly state: UrlState;
}

/** What the engines of one upstream tell and hear, in all workers. */
interface EjectionsOfUpstream {
  tell(url: string, state: UrlState): void;
  /** Hears what the others tell, first of all what is out of service already. Returns what ends that. */
  listen(heard: (url: string, state: UrlState) => void): () => void;
}

/** A worker's side: what its upstreams tell goes to the other workers, by the primary. */
export class SharedEjections {
  readonly #primary: Peer;
  readonly #listeners = new Set<(told: ToldUrl) => void>();
  /** What is out of service, by upstream and URL. */
  readonly #ejected = new Map<string, ToldUrl>();

  constructor(primary: Peer) {
    this.#primary = primary;
    primary.hear("ejections", (body) => {
      const told = body as ToldUrl;
      note(this.#ejected, told);
      for (const heard of this.#listeners) heard(told);
    });
  }

  /** `upstream`: what tells it from the others, the same in all workers. */
  of(upstream: string): EjectionsOfUpstream {
    return {
      tell: (url, state) => {
        const told: ToldUrl = { upstream, url, state };
        note(this.#ejected, told);
        this.#primary.tell("ejections", told);
      },
      listen: (heard) => {
        const listener = (told: ToldUrl): void => {
          if (told.upstream === upstream) heard(told.url, told.state);
        };
        for (const told of this.#ejected.values()) listener(told);
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
    };
  }
}

/** The primary's side: it keeps what is out of service for workers that come later, and lets one worker probe each URL. */
export class EjectionsOfWorkers {
  readonly #workers = new Set<Peer>();
  readonly #ejected = new Map<string, ToldUrl>();
  /** Who probes a URL: who was the first to say that it is out of service. */
  readonly #probing = new Map<string, Peer>();

  join(worker: Peer): void {
    this.#workers.add(worker);
    for (const told of this.#ejected.values()) worker.tell("ejections", told);
    worker.hear("ejections", (body) => this.#told(worker, body as ToldUrl));
    void worker.closed.then(() => {
      this.#workers.delete(worker);
      // The others look at it themselves when they hear nothing for a while; the first that does probes it from then on.
      for (const [key, probing] of this.#probing) if (probing === worker) this.#probing.delete(key);
    });
  }

  #told(by: Peer, told: ToldUrl): void {
    note(this.#ejected, told);
    const key = keyOf(told);
    const probing = this.#probing.get(key) ?? by;
    if (told.state.inService) this.#probing.delete(key);
    else this.#probing.set(key, probing);
    // Two that found it out at the same time: the second one leaves it to the first.
    if (!told.state.inService && probing !== by) return by.tell("ejections", told);
    for (const worker of this.#workers) if (worker !== by) worker.tell("ejections", told);
  }
}

function note(ejected: Map<string, ToldUrl>, told: ToldUrl): void {
  if (told.state.inService) ejected.delete(keyOf(told));
  else ejected.set(keyOf(told), told);
}

function keyOf({ upstream, url }: ToldUrl): string {
  return JSON.stringify([upstream, url]);
}
