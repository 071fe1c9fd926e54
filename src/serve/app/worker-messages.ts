import type { TruewireConfig } from "../config/schema.ts";
import type { ModelInfo } from "../../wire/core/engine.ts";

/** What a worker sends to its parent process. A worker answers its `serve` messages in their order, each with `ready` or `failed`. */
export type FromWorker =
  /** It runs, and waits for its configuration. */
  | { readonly kind: "started" }
  | { readonly kind: "ready"; readonly url: string; readonly models: readonly ModelInfo[] }
  /** It cannot serve the configuration. `code` and `syscall`: of an error of the system, such as EADDRINUSE when it listens. */
  | {
      readonly kind: "failed";
      readonly message: string;
      readonly code?: string | undefined;
      readonly syscall?: string | undefined;
    }
  /** Answers `ping`. */
  | { readonly kind: "alive" }
  /** Asks for the metrics of all workers. */
  | { readonly kind: "all-metrics" }
  /** Answers `metrics`. */
  | { readonly kind: "metrics"; readonly text: string };

/** What the parent process sends to a worker. */
export type ToWorker =
  /** The configuration to serve: the first one, or another one after a reload. */
  | {
      readonly kind: "serve";
      /** The number of the worker, from 1. */
      readonly number: number;
      readonly config: TruewireConfig;
      /** The key of the installation, in base64. */
      readonly turnKey: string;
    }
  | { readonly kind: "stop"; readonly graceMs: number }
  | { readonly kind: "ping" }
  /** Asks for the metrics of this worker. */
  | { readonly kind: "metrics" }
  /** Answers `all-metrics`. */
  | { readonly kind: "all-metrics"; readonly text: string };
