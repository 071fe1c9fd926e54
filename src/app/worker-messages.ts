import type { TruewireConfig } from "../config/config.ts";
import type { ModelInfo } from "../core/engine.ts";
import type { ServerFiles } from "./server-files.ts";

/** Messages between the primary process and its workers about starting and stopping. */
export const workerTopics = {
  /** Asked by a worker, first of all → `WorkerStart`. */
  start: "worker.start",
  /** Told by a worker: `WorkerReady`, or `WorkerFailed`. */
  ready: "worker.ready",
  failed: "worker.failed",
  /** Asked by the primary: a `WorkerConfig` to go over to → `readonly ModelInfo[]`. */
  reload: "worker.reload",
  /** Asked by the primary every few seconds → null. */
  alive: "worker.alive",
} as const;

/**
 * What a worker serves. What the files say that a configuration names comes along: a worker that takes another one's place is not to see
 * a change that nobody has asked to be read.
 */
export interface WorkerConfig {
  readonly config: TruewireConfig;
  readonly files: ServerFiles;
}

export interface WorkerStart extends WorkerConfig {
  readonly number: number;
  /** The number of all workers. */
  readonly count: number;
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
