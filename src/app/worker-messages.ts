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
 * What a worker serves. It includes the contents of the files that a configuration names, so that a worker that replaces another one sees no
 * change before a reload is requested.
 */
export interface WorkerConfig {
  readonly config: TruewireConfig;
  readonly files: ServerFiles;
}

export interface WorkerStart extends WorkerConfig {
  readonly number: number;
  /** The number of all workers. */
  readonly count: number;
  /** The key of the installation. */
  readonly turnKey: Uint8Array;
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
