import type { Log } from "../server/log.ts";

export interface OpenOptions {
  readonly log: Log;
  /** How many files the process may have open: upstreams leave some for the clients of the server around them. */
  readonly descriptorLimit?: number;
  /** Aborts the opening of a model. */
  readonly signal?: AbortSignal;
  /** Reports the progress of loading a local model; `fraction` is from 0 to 1. */
  readonly onProgress?: (
    name: string,
    progress: { readonly phase: "download" | "load"; readonly fraction: number },
  ) => void;
}
