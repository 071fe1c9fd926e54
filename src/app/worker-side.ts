import type { Peer } from "../workers/peer.ts";
import { RemoteEngines } from "../workers/remote-engines.ts";
import { SharedControl } from "../workers/shared-control.ts";
import { SharedEjections } from "../workers/shared-ejections.ts";
import { SharedInspection } from "../workers/shared-inspection.ts";
import { shareHealth } from "../workers/shared-health.ts";
import { SharedLimiter } from "../workers/shared-limiter.ts";
import { shareNumbers } from "../workers/shared-numbers.ts";
import { findRunIn, lendRuns, shareAnswers } from "../workers/shared-runs.ts";
import type { RunningAnswers } from "../server/running-answers.ts";
import { SharedStore } from "../workers/shared-store.ts";
import type { Limiter } from "../kv/limits.ts";
import type { ModelControl } from "../server/admin/model-control.ts";
import { DetachedRuns } from "../server/detached-runs.ts";
import type { InspectedRequests, Inspector } from "../server/inspect/inspector.ts";
import type { HealthReport, Metrics, Others } from "../server/service.ts";
import type { ModelDirectory } from "../server/model-directory.ts";
import type { Store } from "../kv/store.ts";
import type { ServerFiles } from "./server-files.ts";

/** What a worker has of its primary process, in place of its own. */
export interface WorkerSide {
  /** Number of the worker, from 1, and of all workers; known after the primary process has sent them. */
  number: number;
  count: number;
  /** Of the configuration that the primary process has sent last. */
  files: ServerFiles | undefined;
  /** The key of the installation. */
  turnKey: Uint8Array | undefined;
  /** Local models and programs. */
  readonly engines: RemoteEngines;
  readonly store: Store;
  readonly brief: Store;
  readonly turns: Store;
  readonly limiter: Limiter;
  readonly ejections: SharedEjections;
  readonly runs: DetachedRuns;
  readonly answers: RunningAnswers;
  /** The admin API; `directory`: this worker's. */
  control(directory: () => ModelDirectory): ModelControl;
  /** The inspected requests of all workers; `own`: of this one, if they are recorded. */
  inspection(own: () => Inspector | undefined): InspectedRequests;
  /** How all workers are; `own`: this one. */
  others(own: () => HealthReport): Others;
  /** The numbers of all; `ownText`: this worker's. */
  metrics(own: Metrics, ownText: () => Promise<string>): Metrics;
}

/** Hears everything from the first message on. */
export function openWorkerSide(primary: Peer): WorkerSide {
  const runs = new DetachedRuns(findRunIn(primary));
  lendRuns(primary, runs);
  const answers = shareAnswers(primary);
  return {
    number: 0,
    count: 1,
    files: undefined,
    turnKey: undefined,
    engines: new RemoteEngines(primary),
    store: new SharedStore(primary, "lasting"),
    brief: new SharedStore(primary, "brief"),
    turns: new SharedStore(primary, "turns"),
    limiter: new SharedLimiter(primary),
    ejections: new SharedEjections(primary),
    runs,
    answers,
    control: (directory) => new SharedControl(primary, directory),
    inspection: (own) => new SharedInspection(primary, own),
    others: (own) => shareHealth(primary, own),
    metrics(own, ownText) {
      return shareNumbers(primary, String(this.number), own, ownText);
    },
  };
}
