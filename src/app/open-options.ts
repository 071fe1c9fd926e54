import type { Log } from "../server/log.ts";

export interface OpenOptions {
  readonly log: Log;
  /** How many files the process may have open: upstreams leave some for the clients of the server around them. */
  readonly descriptorLimit?: number;
  /** Aborted while a model is being opened: nobody wants it any more. */
  readonly signal?: AbortSignal;
  /** How far a local model's loading is, 0 to 1. */
  readonly onProgress?: (
    name: string,
    progress: { readonly phase: "download" | "load"; readonly fraction: number },
  ) => void;
}
