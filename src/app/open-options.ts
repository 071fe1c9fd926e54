import type { SharedEjections } from "../cluster/shared-ejections.ts";
import type { Engine } from "../generation/engine.ts";
import type { Log } from "../server/log.ts";

export interface OpenOptions {
  readonly log: Log;
  /** How many files the process may have open: upstreams leave some for the clients of the server around them. */
  readonly descriptorLimit?: number;
  /** Aborted while a model is being opened: nobody wants it any more. */
  readonly signal?: AbortSignal;
  /** In a worker: opens a local model or a program, which the primary process has, by its key in the pool. Absent: it is opened here. */
  readonly openShared?: (key: string) => Promise<Engine>;
  /** In a worker: what the workers tell each other of the URLs of upstreams. */
  readonly ejections?: SharedEjections;
  /** How far a local model's loading is, 0 to 1. */
  readonly onProgress?: (
    name: string,
    progress: { readonly phase: "download" | "load"; readonly fraction: number },
  ) => void;
}
