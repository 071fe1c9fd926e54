import type { ModelInfo } from "../../core/engine.ts";
import type { GenerationEvent } from "../../core/events.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type { Format } from "../../formats/format.ts";

/** What a program's worker thread is started with. */
export interface WorkerSetup {
  readonly path: string;
  readonly format: Format;
  /** Clients are told the words of any exception. */
  readonly showErrors: boolean;
}

/** To the worker. A run may send as many batches as it has credit; each one read gives one back. */
export type ToWorker =
  | { readonly type: "run"; readonly run: number; readonly request: GenerationRequest; readonly credit: number }
  | { readonly type: "credit"; readonly run: number }
  | { readonly type: "abort"; readonly run: number };

/** From the worker. */
export type FromWorker =
  | { readonly type: "ready"; readonly blocking: boolean; readonly models?: readonly ModelInfo[] }
  | { readonly type: "failed"; readonly message: string }
  | { readonly type: "events"; readonly run: number; readonly events: readonly GenerationEvent[] }
  /** A line for the server's log. */
  | { readonly type: "warning"; readonly line: string }
  /** The run is over: its generator has returned, its `finally` blocks have run. */
  | { readonly type: "done"; readonly run: number };
