import type { Lease, Limiter, Limits, Refusal } from "../kv/limits.ts";
import { MemoryLimiter } from "../kv/memory-limiter.ts";
import type { Peer } from "./peer.ts";

/** A worker says of each request that was taken when it has ended; the primary waits no longer than this to hear it. In milliseconds. */
const settleMs = 100;

interface Take {
  readonly name: string;
  readonly limits: Limits;
  readonly tokens: number;
  readonly reserved: number;
}

type Taken = { readonly levels: Lease["levels"]; readonly lease: number } | { readonly refusal: Refusal };

interface End {
  readonly lease: number;
  readonly cost: number;
}

/** A worker's limiter: the primary counts for all workers. */
export class SharedLimiter implements Limiter {
  readonly #primary: Peer;
  /** For the moments in which the primary is gone, and this worker has not ended yet. */
  readonly #alone = new MemoryLimiter();

  constructor(primary: Peer) {
    this.#primary = primary;
    // Whatever this worker has told before is known when this is answered.
    primary.answer("limits.settle", () => undefined);
  }

  async take(name: string, limits: Limits, tokens: number, reserved = 0): Promise<Lease | Refusal> {
    let taken: Taken;
    try {
      taken = (await this.#primary.ask("limits.take", { name, limits, tokens, reserved } satisfies Take)) as Taken;
    } catch {
      return this.#alone.take(name, limits, tokens, reserved);
    }
    if ("refusal" in taken) return taken.refusal;
    const { lease, levels } = taken;
    return { levels, end: (cost) => this.#primary.tell("limits.end", { lease, cost } satisfies End) };
  }

  async close(): Promise<void> {}
}

interface OpenLease {
  readonly lease: Lease;
  readonly name: string;
  /** What was taken for its prompt. */
  readonly tokens: number;
}

/** The primary's side: one limiter counts what all workers take. */
export class LimiterOfWorkers {
  readonly #limiter: Limiter;
  readonly #workers = new Map<Peer, Map<number, OpenLease>>();
  #lastLease = 0;
  /** How many leases have ended, by name. */
  readonly #ended = new Map<string, number>();
  #settling = Promise.resolve();
  /** A round that has not begun; whoever needs one meanwhile waits for the same. */
  #nextRound: Promise<void> | undefined;

  constructor(limiter: Limiter) {
    this.#limiter = limiter;
  }

  join(worker: Peer): void {
    const open = new Map<number, OpenLease>();
    this.#workers.set(worker, open);
    worker.answer("limits.take", (body) => this.#take(worker, body as Take));
    worker.hear("limits.end", (body) => {
      const { lease, cost } = body as End;
      const ended = open.get(lease);
      open.delete(lease);
      if (ended) this.#end(ended, cost);
    });
    void worker.closed.then(() => {
      this.#workers.delete(worker);
      // What they have cost is unknown: what was taken for their prompts stays counted, and what they reserved is given back.
      for (const each of open.values()) this.#end(each, each.tokens);
    });
  }

  async #take(worker: Peer, { name, limits, tokens, reserved }: Take): Promise<Taken> {
    const endedBefore = this.#ended.get(name);
    let taken = await this.#limiter.take(name, limits, tokens, reserved);
    if ("bound" in taken && taken.bound === "concurrency") {
      // A client that has its answer may ask another worker before the end of that answer is known here.
      await this.#settle();
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

  /** Resolves when everything is known here that any worker had told before this call. One round at a time: refusals may be many. */
  #settle(): Promise<void> {
    return (this.#nextRound ??= this.#settling.then(() => {
      this.#nextRound = undefined;
      const asked = [...this.#workers.keys()].map((worker) => worker.ask("limits.settle", undefined));
      return (this.#settling = within(settleMs, Promise.allSettled(asked)));
    }));
  }
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([work, new Promise((resolve) => (timer = setTimeout(resolve, ms)))]);
  clearTimeout(timer);
}
