import type { UpstreamUrl } from "../core/engine.ts";
import type { EngineReport, HealthReport, RequestCounts, Others } from "../server/service.ts";
import { askAll } from "./peer.ts";
import type { Peer } from "./peer.ts";

/** Health checks often time out after one second. In milliseconds. */
const timeoutMs = 300;

/** The other workers, as the primary process knows them. `gone`: the requests of workers that have ended. */
interface HealthOfOthers {
  readonly reports: readonly HealthReport[];
  readonly gone: RequestCounts;
}

const none: RequestCounts = { open: 0, total: 0, cancelled: 0, failed: 0 };

/** In a worker. `own` returns the health of this worker, for the others. */
export function shareHealth(primary: Peer, own: () => HealthReport): Others {
  primary.onRequest("health.own", own);
  return {
    async health(report) {
      const others = await primary.request("health.others", report).catch(() => undefined);
      if (others === undefined) return report;
      const { reports, gone } = others as HealthOfOthers;
      return mergeHealth(report, reports, gone);
    },
  };
}

/** In the primary process. */
export class HealthOfWorkers {
  /** The last report of each worker. */
  readonly #reports = new Map<Peer, HealthReport>();
  readonly #workers = new Set<Peer>();
  #gone = none;

  join(worker: Peer): void {
    this.#workers.add(worker);
    worker.onRequest("health.others", (report) => this.#others(worker, report as HealthReport));
    void worker.closed.then(() => {
      this.#workers.delete(worker);
      const last = this.#reports.get(worker);
      this.#reports.delete(worker);
      if (!last) return;
      // Its open requests have failed.
      const { open, failed } = last.requests;
      this.#gone = sum(this.#gone, { ...last.requests, open: 0, failed: failed + open });
    });
  }

  async #others(asking: Peer, report: HealthReport): Promise<HealthOfOthers> {
    this.#reports.set(asking, report);
    const others = [...this.#workers].filter((worker) => worker !== asking);
    const answers = await askAll(others, "health.own", timeoutMs);
    for (const [worker, own] of answers) if (this.#workers.has(worker)) this.#reports.set(worker, own as HealthReport);
    return { reports: others.flatMap((worker) => this.#reports.get(worker) ?? []), gone: this.#gone };
  }
}

/** The most useful state first. */
const rank: readonly EngineReport["state"][] = ["ready", "unloaded", "loading", "restarting", "failed", "closed"];

/** Merges reports. `own` decides which engines are listed: other workers may have an older configuration. */
export function mergeHealth(
  own: HealthReport,
  others: readonly HealthReport[],
  gone: RequestCounts = none,
): HealthReport {
  return {
    state: own.state,
    engines: own.engines.map((engine, at) => {
      const nth = own.engines.slice(0, at).filter(({ name }) => name === engine.name).length;
      return others.reduce((merged, report) => {
        const other = report.engines.filter(({ name }) => name === engine.name)[nth];
        return other ? mergeEngine(merged, other) : merged;
      }, engine);
    }),
    requests: others.reduce((counts, { requests }) => sum(counts, requests), sum(own.requests, gone)),
  };
}

function mergeEngine(one: EngineReport, other: EngineReport): EngineReport {
  const better = rank.indexOf(other.state) < rank.indexOf(one.state) ? other : one;
  const best = { ...better, ...(one.urls && { urls: mergeUrls(one.urls, other.urls ?? []) }) };
  if (!one.counters || !other.counters) return best;
  const counters: Record<string, number> = { ...one.counters };
  for (const [name, value] of Object.entries(other.counters)) {
    const merge = merging[name] ?? Math.max;
    counters[name] = merge(counters[name] ?? value, value);
  }
  return { ...best, counters };
}

/** The URLs of one upstream in two workers. A URL is as bad as the worker that knows it worst says. */
function mergeUrls(own: readonly UpstreamUrl[], others: readonly UpstreamUrl[]): readonly UpstreamUrl[] {
  return own.map((one, at) => {
    const other = others[at];
    if (other?.url !== one.url) return one;
    const states = [one.state, other.state];
    const failure = one.failure ?? other.failure;
    return {
      url: one.url,
      state: states.find((state) => state === "absent") ?? states.find((state) => state === "ejected") ?? "ready",
      open: one.open + other.open,
      retries: one.retries + other.retries,
      ejections: one.ejections + other.ejections,
      ...(failure !== undefined && { failure }),
    };
  });
}

/** Each worker counts its own requests to upstreams, which are summed. All other counters are about shared engines and URLs. */
const merging: Readonly<Record<string, (one: number, other: number) => number>> = {
  outstanding: (one, other) => one + other,
  retries: (one, other) => one + other,
  targetsInService: Math.min,
};

function sum(one: RequestCounts, other: RequestCounts): RequestCounts {
  return {
    open: one.open + other.open,
    total: one.total + other.total,
    cancelled: one.cancelled + other.cancelled,
    failed: one.failed + other.failed,
  };
}
