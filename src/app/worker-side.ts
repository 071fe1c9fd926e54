import type { Peer } from "../cluster/peer.ts";
import { RemoteEngines } from "../cluster/remote-engines.ts";
import { SharedEjections } from "../cluster/shared-ejections.ts";
import { SharedLimiter } from "../cluster/shared-limiter.ts";
import { findRunIn, lendRuns } from "../cluster/shared-runs.ts";
import { SharedStore } from "../cluster/shared-store.ts";
import type { Limiter } from "../limits/limits.ts";
import { DetachedRuns } from "../server/detached-runs.ts";
import type { Store } from "../store/store.ts";
import type { ServerFiles } from "./server-files.ts";

/** What a worker has of its primary process, in place of its own. */
export interface WorkerSide {
  readonly primary: Peer;
  /** Of the configuration that the primary process has sent last. */
  files: ServerFiles | undefined;
  /** Local models and programs. */
  readonly engines: RemoteEngines;
  readonly store: Store;
  readonly brief: Store;
  readonly limiter: Limiter;
  readonly ejections: SharedEjections;
  readonly runs: DetachedRuns;
}

/** Hears everything from the first message on. */
export function openWorkerSide(primary: Peer): WorkerSide {
  const runs = new DetachedRuns(findRunIn(primary));
  lendRuns(primary, runs);
  return {
    primary,
    files: undefined,
    engines: new RemoteEngines(primary),
    store: new SharedStore(primary, "lasting"),
    brief: new SharedStore(primary, "brief"),
    limiter: new SharedLimiter(primary),
    ejections: new SharedEjections(primary),
    runs,
  };
}
