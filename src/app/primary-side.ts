import { EngineHost, EngineStates } from "../workers/engine-host.ts";
import { shareControl } from "../workers/shared-control.ts";
import { EjectionsOfWorkers } from "../workers/shared-ejections.ts";
import { HealthOfWorkers } from "../workers/shared-health.ts";
import { InspectionOfWorkers } from "../workers/shared-inspection.ts";
import { LimiterOfWorkers } from "../workers/shared-limiter.ts";
import { NumbersOfWorkers } from "../workers/shared-numbers.ts";
import { RunsOfWorkers } from "../workers/shared-runs.ts";
import { shareStore } from "../workers/shared-store.ts";
import type { WorkerProcess } from "../workers/worker-processes.ts";
import type { Config } from "../config/schema.ts";
import type { Engine } from "../core/engine.ts";
import type { ModelControl } from "../server/admin/model-control.ts";
import type { Log } from "../server/log.ts";
import type { ModelDirectory } from "../server/model-directory.ts";
import { openMetrics } from "../server/metrics/open-metrics.ts";
import { briefly } from "../server/service.ts";
import { MemoryStore } from "../kv/memory-store.ts";
import { openLimiterOf, openStoreOf, openTurnStoreOf, turnLimitsOf } from "./open-store-of.ts";
import { nodeRuntime } from "./runtime.ts";

/** What the workers of a server use together. */
export interface PrimarySide {
  /** A worker takes part until it ends. */
  join(worker: WorkerProcess): void;
  close(): Promise<void>;
}

export interface PrimaryModels {
  /** A local model or a program, by its key in the pool, as soon as it is open. */
  readonly find: (key: string) => Promise<Engine>;
  readonly control: ModelControl;
  /** As it is now. */
  readonly directory: () => ModelDirectory;
}

/** Throws `ConfigError` where the store cannot be opened. */
export async function openPrimarySide(config: Config, log: Log, models: PrimaryModels): Promise<PrimarySide> {
  const store = await openStoreOf(config, log, nodeRuntime);
  const turns = (await openTurnStoreOf(config, nodeRuntime)) ?? new MemoryStore(turnLimitsOf(config));
  const brief = new MemoryStore(briefly);
  const limiter = await openLimiterOf(config, log, nodeRuntime);
  const metrics = config.metrics === "off" ? undefined : openMetrics();
  const states = new EngineStates();
  const limits = new LimiterOfWorkers(limiter);
  const runs = new RunsOfWorkers();
  const ejections = new EjectionsOfWorkers();
  const health = new HealthOfWorkers();
  const inspection = new InspectionOfWorkers();
  const numbers = new NumbersOfWorkers(async () => (await metrics?.text([], 0)) ?? "");
  return {
    join({ number, peer }) {
      new EngineHost(peer, states, models.find).listen();
      shareControl(peer, models.control, models.directory);
      shareStore(peer, "lasting", store);
      shareStore(peer, "brief", brief);
      shareStore(peer, "turns", turns);
      limits.join(peer);
      runs.join(peer);
      ejections.join(peer);
      health.join(peer);
      inspection.join(peer);
      numbers.join(peer, String(number));
    },
    async close() {
      metrics?.close();
      await store.close();
      await turns.close();
      await limiter.close();
    },
  };
}
