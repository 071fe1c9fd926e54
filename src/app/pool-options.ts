import type { SharedEjections } from "../workers/shared-ejections.ts";
import type { Engine } from "../core/engine.ts";
import type { OpenOptions } from "./open-options.ts";

export interface PoolOptions extends OpenOptions {
  /** In a worker: opens a local model or a program, which the primary process has, by its key in the pool. Absent: it is opened here. */
  readonly openShared?: (key: string) => Promise<Engine>;
  /** In a worker: what the workers tell each other of the URLs of upstreams. */
  readonly ejections?: SharedEjections;
}
