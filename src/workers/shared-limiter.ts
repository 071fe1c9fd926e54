import type { LimitLease, Limiter, UsageLimits, Refusal } from "../kv/limits.ts";
import { MemoryLimiter } from "../kv/memory-limiter.ts";
import { within } from "./peer.ts";
import type { Peer } from "./peer.ts";

/** How long the primary process waits for workers to report ended requests, in milliseconds. */
const flushMs = 100;

interface TakeRequest {
  readonly name: string;
  readonly limits: UsageLimits;
  readonly tokens: number;
  readonly reserved: number;
}

type TakeAnswer = { readonly levels: LimitLease["levels"]; readonly lease: number } | { readonly refusal: Refusal };

interface EndMessage {
  readonly lease: number;
  readonly cost: number;
}

/** A worker's limiter: the primary process counts for all workers. */
export class SharedLimiter implements Limiter {
  readonly #primary: Peer;
  /** Used after the primary process has ended, until this worker ends, too. */
  readonly #fallback = new MemoryLimiter();

  constructor(primary: Peer) {
    this.#primary = primary;
    // Messages arrive in order: when this is answered, all ended requests have been reported.
    primary.onRequest("limits.flush", () => undefined);
  }

  async take(name: string, limits: UsageLimits, tokens: number, reserved = 0): Promise<LimitLease | Refusal> {
    let taken: TakeAnswer;
    try {
      taken = (await this.#primary.request("limits.take", {
        name,
        limits,
        tokens,
        reserved,
      } satisfies TakeRequest)) as TakeAnswer;
    } catch {
      return this.#fallback.take(name, limits, tokens, reserved);
    }
    if ("refusal" in taken) return taken.refusal;
    const { lease, levels } = taken;
    return { levels, end: (cost) => this.#primary.notify("limits.end", { lease, cost } satisfies EndMessage) };
  }

  async close(): Promise<void> {}
}

interface OpenLease {
  readonly lease: LimitLease;
  readonly name: string;
  /** Taken for the prompt. */
  readonly tokens: number;
}

/** In the primary process: one limiter counts for all workers. */
export class LimiterOfWorkers {
  readonly #limiter: Limiter;
  readonly #workers = new Map<Peer, Map<number, OpenLease>>();
  #lastLease = 0;
  /** The number of ended leases, by name. */
  readonly #ended = new Map<string, number>();
  #flushing = Promise.resolve();
  /** A round that has not begun, shared by all requests that wait for one. */
  #nextRound: Promise<void> | undefined;

  constructor(limiter: Limiter) {
    this.#limiter = limiter;
  }

  join(worker: Peer): void {
    const open = new Map<number, OpenLease>();
    this.#workers.set(worker, open);
    worker.onRequest("limits.take", (body) => this.#take(worker, body as TakeRequest));
    worker.onNotification("limits.end", (body) => {
      const { lease, cost } = body as EndMessage;
      const ended = open.get(lease);
      open.delete(lease);
      if (ended) this.#end(ended, cost);
    });
    void worker.closed.then(() => {
      this.#workers.delete(worker);
      // The cost of its open requests is unknown: the prompts stay counted, and the reservations are released.
      for (const each of open.values()) this.#end(each, each.tokens);
    });
  }

  async #take(worker: Peer, { name, limits, tokens, reserved }: TakeRequest): Promise<TakeAnswer> {
    const endedBefore = this.#ended.get(name);
    let taken = await this.#limiter.take(name, limits, tokens, reserved);
    if ("bound" in taken && taken.bound === "concurrency") {
      // A client may send its next request to another worker before the end of its last one is known here.
      await this.#flush();
      if (this.#ended.get(name) !== endedBefore) taken = await this.#limiter.take(name, limits, tokens, reserved);
    }
    if ("bound" in taken) return { refusal: taken };
    const opened: OpenLease = { lease: taken, name, tokens };
    const lease = ++this.#lastLease;
    const open = this.#workers.get(worker);
    if (open) open.set(lease, opened);
    else this.#end(opened, tokens);
    return { levels: taken.levels, lease };
  }

  #end({ lease, name }: OpenLease, cost: number): void {
    lease.end(cost);
    this.#ended.set(name, (this.#ended.get(name) ?? 0) + 1);
  }

  /** Resolves when all requests that ended in a worker before this call are known here. There is one round at a time. */
  #flush(): Promise<void> {
    return (this.#nextRound ??= this.#flushing.then(() => {
      this.#nextRound = undefined;
      const asked = [...this.#workers.keys()].map((worker) => worker.request("limits.flush", undefined));
      return (this.#flushing = within(flushMs, Promise.allSettled(asked)));
    }));
  }
}
