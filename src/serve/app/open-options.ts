import type { Log } from "../server/log.ts";
import type { LogListener } from "../../wire/core/generation-observer.ts";
import type { ServedEngine } from "../server/model-directory.ts";

export interface OpenOptions {
  readonly log: Log;
  /** Maximum number of open files of the process: connections to upstreams leave some of them for clients. */
  readonly descriptorLimit?: number;
  /** How long the opening of an upstream may take; one that takes longer, or fails, is taken in later. Default: as long as it takes. */
  readonly upstreamPatienceMs?: number;
  /** Aborts the opening of a model. */
  readonly signal?: AbortSignal;
  /** Reports the progress of loading a local model; `fraction` is from 0 to 1. */
  readonly onProgress?: (
    name: string,
    progress: { readonly phase: "download" | "load"; readonly fraction: number },
  ) => void;
}

/**
 * Returns an observer that writes an engine's messages to the server's log, with the model's name.
 *
 * @internal
 */
export function observerOf(log: Log, model: string): LogListener {
  return (line, level, fields) => log[level]({ model, ...fields }, line);
}

/**
 * An engine, and the APIs whose requests it forwards unchanged.
 *
 * @internal
 */
export type OpenedEngine = Pick<ServedEngine, "engine" | "forwards" | "passing">;
