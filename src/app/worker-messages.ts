import type { TruewireConfig } from "../config/config.ts";
import type { ModelInfo } from "../generation/engine.ts";

/** What the primary process and its workers tell each other about their life. */
export const workerTopics = {
  /** Asked by a worker, first of all → `WorkerStart`. */
  start: "worker.start",
  /** Told by a worker: `WorkerReady`, or `WorkerFailed`. */
  ready: "worker.ready",
  failed: "worker.failed",
  /** Asked by the primary: a `TruewireConfig` to go over to → `readonly ModelInfo[]`. */
  reload: "worker.reload",
} as const;

export interface WorkerStart {
  readonly number: number;
  readonly config: TruewireConfig;
}

export interface WorkerReady {
  readonly url: string;
  readonly models: readonly ModelInfo[];
}

/** Why a worker cannot serve. */
export interface WorkerFailed {
  readonly message: string;
  /** Of an error of the system, such as EADDRINUSE when it listens. */
  readonly code?: string | undefined;
  readonly syscall?: string | undefined;
}
