import { monitorEventLoopDelay } from "node:perf_hooks";
import type { IntervalHistogram } from "node:perf_hooks";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { EngineHealth } from "../../../wire/core/engine.ts";
import { durationBuckets, RequestNumbers } from "./request-numbers.ts";
import type { ServedEngine } from "../model-directory.ts";
import type { Metrics } from "../service.ts";
import type { TurnCounts } from "../stored-turns.ts";

/**
 * Opens the metrics of a server, in a registry of their own, so that they do not appear in the metrics of a host application. `turns`: the
 * memory of turns, if there is one.
 */
export function openMetrics(turns?: { readonly counts: TurnCounts }): Metrics {
  const registry = new Registry();
  const memory = new TurnNumbers(registry);
  const requests = new RequestNumbers(registry);
  const engines = new EngineNumbers(registry);
  const ofProcess = new ProcessNumbers(registry);
  const hosted = new HostedNumbers(registry);
  const open = new Gauge({
    name: "truewire_open_requests",
    help: "Running requests, including the one that reads the metrics.",
    registers: [registry],
  });
  return {
    observe: (record, outcome) => requests.observe(record, outcome),
    observeHostedCall: (executor, outcome, ms) => hosted.observe(executor, outcome, ms),
    contentType: registry.contentType,
    async text(served, openRequests) {
      const ofRequests = requests.text();
      engines.refresh(served);
      ofProcess.refresh();
      if (turns) memory.refresh(turns.counts);
      open.set(openRequests);
      return `${ofRequests}\n${await registry.metrics()}`;
    },
    close: () => ofProcess.close(),
  };
}

/** Metrics of the calls of hosted tools, by the names of the configuration. */
class HostedNumbers {
  readonly #calls;
  readonly #seconds;

  constructor(registry: Registry) {
    this.#calls = new Counter({
      name: "truewire_hosted_calls_total",
      help: "Calls of hosted tools, by the name of what runs them.",
      labelNames: ["tool", "outcome"],
      registers: [registry],
    });
    this.#seconds = new Histogram({
      name: "truewire_hosted_call_duration_seconds",
      help: "How long calls of hosted tools took.",
      labelNames: ["tool"],
      buckets: durationBuckets,
      registers: [registry],
    });
  }

  observe(tool: string, outcome: string, ms: number): void {
    this.#calls.inc({ tool, outcome });
    this.#seconds.observe({ tool }, ms / 1000);
  }
}

/** Metrics of the memory of turns. */
class TurnNumbers {
  readonly #turns;
  readonly #bytes;

  constructor(registry: Registry) {
    const counter = (name: string, help: string): Counter<"result"> =>
      new Counter({ name, help, labelNames: ["result"], registers: [registry] });
    this.#turns = counter(
      "truewire_turn_memory_turns_total",
      "Turns that were kept for clients that do not return them, and turns that were looked for.",
    );
    this.#bytes = counter("truewire_turn_memory_bytes_total", "Bytes of turns that were kept, and that were evicted.");
  }

  refresh({ kept, keptBytes, found, missing, evictedBytes }: TurnCounts): void {
    this.#turns.reset();
    this.#bytes.reset();
    for (const [result, count] of Object.entries({ kept, found, missing })) this.#turns.inc({ result }, count);
    for (const [result, count] of Object.entries({ kept: keptBytes, evicted: evictedBytes }))
      this.#bytes.inc({ result }, count);
  }
}

interface EngineNumber {
  readonly metric: Gauge<"engine"> | Counter<"engine">;
  /** undefined: engines of this kind have no such metric. */
  readonly of: (health: EngineHealth) => number | undefined;
}

/** Metrics of engines, read from `health()` when they are scraped. */
export class EngineNumbers {
  readonly #numbers: readonly EngineNumber[];

  constructor(registry: Registry) {
    const gauge = (name: string, help: string, of: EngineNumber["of"]): EngineNumber => ({
      metric: new Gauge({ name, help, labelNames: ["engine"], registers: [registry] }),
      of,
    });
    const counter = (name: string, help: string, of: EngineNumber["of"]): EngineNumber => ({
      metric: new Counter({ name, help, labelNames: ["engine"], registers: [registry] }),
      of,
    });
    this.#numbers = [
      gauge("truewire_engine_ready", "1: the engine can answer.", ({ state }) => (state === "ready" ? 1 : 0)),
      gauge("truewire_slots", "Slots: the maximum number of concurrent generations.", ({ slots }) => slots?.total),
      gauge("truewire_slots_busy", "Slots in use.", ({ slots }) => slots?.busy),
      gauge("truewire_queue_length", "Requests that wait for a slot.", ({ queued }) => queued),
      counter("truewire_restarts_total", "Restarts of a local model's process.", counted("restarts")),
      counter("truewire_drafted_tokens_total", "Draft tokens of speculative decoding.", counted("draftedTokens")),
      counter("truewire_accepted_tokens_total", "Accepted draft tokens.", counted("acceptedTokens")),
      gauge("truewire_upstream_open_requests", "Requests in progress at an upstream.", counted("outstanding")),
      counter("truewire_upstream_retries_total", "Retried requests to an upstream.", counted("retries")),
      gauge("truewire_upstream_urls", "The URLs of an upstream.", counted("targets")),
      gauge(
        "truewire_upstream_urls_ejected",
        "Upstream URLs that receive no requests because they failed.",
        ({ counters = {} }) => {
          const { targets, targetsInService } = counters;
          return targets === undefined || targetsInService === undefined ? undefined : targets - targetsInService;
        },
      ),
    ];
  }

  refresh(engines: readonly ServedEngine[]): void {
    for (const { metric } of this.#numbers) metric.reset();
    for (const { name, engine } of engines) {
      const health = engine.health();
      for (const { metric, of } of this.#numbers) {
        const value = of(health);
        if (value !== undefined) metric.inc({ engine: name }, value);
      }
    }
  }
}

function counted(name: string): EngineNumber["of"] {
  return ({ counters }) => counters?.[name];
}

/** The resolution at which the delay of the event loop is measured, in milliseconds. */
const resolution = 10;

/**
 * Metrics of the process, under the names of Prometheus' client libraries. The delay of the event loop is measured from the first scrape
 * on, so it costs nothing if metrics are not used.
 */
export class ProcessNumbers {
  readonly #cpu;
  readonly #memory;
  readonly #heap;
  readonly #delays: readonly (readonly [Gauge, (histogram: IntervalHistogram) => number])[];
  #histogram: IntervalHistogram | undefined;

  constructor(registry: Registry) {
    const registers = [registry];
    const gauge = (name: string, help: string): Gauge => new Gauge({ name, help, registers });
    this.#cpu = new Counter({
      name: "process_cpu_seconds_total",
      help: "CPU time of the server's process; local models have processes of their own.",
      registers,
    });
    this.#memory = gauge("process_resident_memory_bytes", "Memory of the server's process.");
    this.#heap = gauge("nodejs_heap_size_used_bytes", "JavaScript objects of the server's process.");
    gauge("process_start_time_seconds", "When the process was started, in Unix time.").set(
      performance.timeOrigin / 1000,
    );
    const delay = (name: string, what: string): Gauge =>
      gauge(`nodejs_eventloop_lag_${name}_seconds`, `${what} delay of the event loop since the last reading.`);
    this.#delays = [
      [delay("mean", "Mean"), ({ mean }) => mean],
      [delay("p50", "Median"), (histogram) => histogram.percentile(50)],
      [delay("p99", "99th percentile of the"), (histogram) => histogram.percentile(99)],
      [delay("max", "Longest"), ({ max }) => max],
    ];
  }

  refresh(): void {
    const { user, system } = process.cpuUsage();
    this.#cpu.reset();
    this.#cpu.inc((user + system) / 1e6);
    const { rss, heapUsed } = process.memoryUsage();
    this.#memory.set(rss);
    this.#heap.set(heapUsed);
    if (this.#histogram) {
      // Includes the interval of the timer.
      for (const [gauge, of] of this.#delays)
        gauge.set(Math.max(0, of(this.#histogram) / 1e9 - resolution / 1000) || 0);
      this.#histogram.reset();
    } else {
      this.#histogram = monitorEventLoopDelay({ resolution });
      this.#histogram.enable();
    }
  }

  close(): void {
    this.#histogram?.disable();
  }
}
