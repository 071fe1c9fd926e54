import type { EngineReport, HealthReport, RequestCounts, Others } from "../server/service.ts";
import { askAll } from "./peer.ts";
import type { Peer } from "./peer.ts";

/** Whoever asks for a server's health may not have more than a second itself. In milliseconds. */
const patienceMs = 300;

/** The others, as the primary knows them: those that answer, and the requests of those that have ended. */
interface HealthOfOthers {
  readonly reports: readonly HealthReport[];
  readonly gone: RequestCounts;
}

const none: RequestCounts = { open: 0, total: 0, cancelled: 0, failed: 0 };

/** A worker's side. `own`: how this worker is, for the others. */
export function shareHealth(primary: Peer, own: () => HealthReport): Others {
  primary.answer("health.own", own);
  return {
    async health(report) {
      const others = await primary.ask("health.others", report).catch(() => undefined);
      if (others === undefined) return report;
      const { reports, gone } = others as HealthOfOthers;
      return mergeHealth(report, reports, gone);
    },
  };
}

/** The primary's side. */
export class HealthOfWorkers {
  /** What each worker told last. */
  readonly #told = new Map<Peer, HealthReport>();
  readonly #workers = new Set<Peer>();
  #gone = none;

  join(worker: Peer): void {
    this.#workers.add(worker);
    worker.answer("health.others", (report) => this.#others(worker, report as HealthReport));
    void worker.closed.then(() => {
      this.#workers.delete(worker);
      const last = this.#told.get(worker);
      this.#told.delete(worker);
      if (!last) return;
      // What it was answering ends with it, and unhappily.
      const { open, failed } = last.requests;
      this.#gone = sum(this.#gone, { ...last.requests, open: 0, failed: failed + open });
    });
  }

  async #others(asking: Peer, report: HealthReport): Promise<HealthOfOthers> {
    this.#told.set(asking, report);
    const others = [...this.#workers].filter((worker) => worker !== asking);
    const answers = await askAll(others, "health.own", patienceMs);
    for (const [worker, told] of answers) if (this.#workers.has(worker)) this.#told.set(worker, told as HealthReport);
    return { reports: others.flatMap((worker) => this.#told.get(worker) ?? []), gone: this.#gone };
  }
}

/** Which state tells most of what the server can do. */
const rank: readonly EngineReport["state"][] = ["ready", "unloaded", "loading", "restarting", "failed", "closed"];

/** `own` decides what there is, and in which order; a worker that is being replaced, or has read another configuration, does not. */
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
  const best = rank.indexOf(other.state) < rank.indexOf(one.state) ? other : one;
  if (!one.counters || !other.counters) return best;
  const counters: Record<string, number> = { ...one.counters };
  for (const [name, value] of Object.entries(other.counters)) {
    const merge = merging[name] ?? Math.max;
    counters[name] = merge(counters[name] ?? value, value);
  }
  return { ...best, counters };
}

/** What each worker counts of the other servers that it asks is added up. All else every worker knows of the same engine or URLs. */
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
