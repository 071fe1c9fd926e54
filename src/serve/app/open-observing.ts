import type { Config } from "../config/schema.ts";
import type { Log } from "../server/log.ts";
import type { StoredTurns } from "../server/stored-turns.ts";
import type { ServiceWatchers } from "../server/service.ts";

/** Who looks on while a service answers. */
export interface Observing {
  readonly of: Pick<ServiceWatchers, "metrics" | "tracing">;
  /** Sends what has not been sent, and measures no more. */
  close(): Promise<void>;
}

/** For a server: numbers, unless they are off, and traces, which go to the collector that the environment names. */
export async function openObserving(
  { metrics: access = "on" }: Config,
  log: Log,
  turns?: StoredTurns,
): Promise<Observing> {
  const [{ openMetrics }, { openTracing }, { exportTraces }] = await Promise.all([
    import("../server/metrics/open-metrics.ts"),
    import("../server/tracing/tracing.ts"),
    import("../server/tracing/export-traces.ts"),
  ]);
  const traces = await exportTraces(process.env, log);
  const metrics = access === "off" ? undefined : openMetrics(turns);
  return {
    of: { tracing: openTracing(process.env, traces?.tracer), metrics },
    async close() {
      metrics?.close();
      await traces?.close();
    },
  };
}
