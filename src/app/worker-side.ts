import type { RemoteEngines } from "../cluster/remote-engines.ts";

/** What a worker has of its primary process, in place of its own. */
export interface WorkerSide {
  /** Which worker it is, from 1 on. */
  readonly number: number;
  /** Local models and programs. */
  readonly engines: RemoteEngines;
}
