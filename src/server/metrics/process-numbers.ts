import { monitorEventLoopDelay } from "node:perf_hooks";
import type { IntervalHistogram } from "node:perf_hooks";
import { Counter, Gauge } from "prom-client";
import type { Registry } from "prom-client";

/** How finely the event loop's delay is measured, in milliseconds. */
const resolution = 10;

/**
 * The process's own numbers, under the names that Prometheus' client libraries give them. The event loop is watched from the first reading
 * on: whom nobody reads, it costs nothing.
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
      // The timer's own pause is measured, too.
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
