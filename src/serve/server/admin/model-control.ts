import type { SourceApi } from "../../../wire/apis/source-port.ts";
import { invalidRequest } from "../../../wire/core/failure.ts";
import type { FailureError } from "../../../wire/core/failure.ts";
import type { ServerProfileReport } from "../../../wire/core/engine.ts";
import type { ModelState, PullState } from "../../../judge/inspect/model-states.ts";
import type { ServedEngine } from "../model-directory.ts";

/** Controls the models for the admin API. Promises reject with `FailureError`. */
export interface ModelControl {
  list(): Promise<ControlledModels>;
  /** `name`: as clients use it. Resolves when the model is loaded. */
  load(name: string, task: ControlTask): Promise<ControlledModel>;
  /** Resolves when the model is unloaded, after its running answers have ended. */
  unload(name: string, task: ControlTask): Promise<ControlledModel>;
  /**
   * Sets how long a local model stays loaded after its last answer, in milliseconds, until it is unloaded; `Infinity`: until another one
   * needs its memory. No effect on models of other kinds, and on those that the configuration keeps loaded.
   */
  keepLoaded(name: string, ms: number): Promise<void>;
  /**
   * Sets whether a local model is never unloaded for another one, nor for being idle; in place of the configuration's `keep`, until that
   * changes. Resolves with the new state.
   */
  keep(name: string, keep: boolean): Promise<ControlledModel>;
  /** `name`: a served model, or `hf:owner/repo[:quant]`. Resolves with the downloaded file. */
  pull(name: string, task: ControlTask): Promise<{ readonly path: string }>;
  /** Reads the configuration again; resolves with the names of the models that it serves. */
  reload(): Promise<{ readonly models: readonly string[] }>;
}

/** A long-running operation on a model, as its client follows it. */
export interface ControlTask {
  readonly signal: AbortSignal;
  readonly report: (progress: Progress) => void;
}

export interface Progress {
  /** `wait`: for memory, or for answers to end. */
  readonly phase: "wait" | "download" | "load";
  /** 0 to 1; absent if not known. */
  readonly fraction?: number;
  readonly bytes?: number;
  readonly total_bytes?: number;
}

export interface ControlledModels {
  /** In bytes, estimated; null: no limit. */
  readonly memory: { readonly limit: number | null; readonly used: number };
  readonly models: readonly ControlledModel[];
  /** The downloads in progress, if there are any. */
  readonly pulls?: readonly PullState[];
}

/** Members about loading are absent for models that are not local. */
export interface ControlledModel {
  readonly name: string;
  /** The names for clients, without aliases. */
  readonly models: readonly string[];
  readonly state: string;
  readonly message?: string;
  /**
   * What the servers of an upstream accept, for the models that have answered; absent for other models, and before the first answer. The
   * route adds it.
   */
  readonly profiles?: readonly ServerProfileReport[];
  /** The memory of the loaded model in bytes; null: not known before it is downloaded. */
  readonly memory?: number | null;
  /** Where a loaded local model computes, with the reason if it is not on a GPU. */
  readonly device?: string;
  readonly load?: "eager" | "lazy" | "manual";
  readonly keep?: boolean;
  readonly idle_unload_ms?: number | null;
  /** The load or download in progress. */
  readonly progress?: ModelState["progress"];
  /** Running generations. */
  readonly busy?: number;
  /** Requests that wait until it is loaded. */
  readonly waiting?: number;
}

/** Checks other servers, as `truewire check` does. */
export interface Checker {
  /**
   * Yields the events of `POST /admin/check` (docs/checking.md) until the check has ended; `signal` ends it immediately. Throws
   * `FailureError`.
   */
  check(asked: CheckRequest, signal: AbortSignal): AsyncIterable<object>;
  /** Yields the events of `POST /admin/between` (docs/between.md) in the same way. */
  between(asked: BetweenRequest, signal: AbortSignal): AsyncIterable<object>;
}

/** The body of `POST /admin/between`: what `truewire between` is asked. The key is kept only during the run. */
export interface BetweenRequest {
  readonly url: string;
  readonly client: SourceApi;
  readonly vendor: SourceApi;
  /** Where the vendor listens, on this machine's loopback. */
  readonly port: number;
  readonly key?: string;
  readonly model?: string;
  readonly quick: boolean;
  /** As the option `--confirm`. */
  readonly confirm?: number;
  /** As the option `--seeds`. */
  readonly seeds?: readonly number[];
}

/** The body of `POST /admin/check`. The key is kept only during the check. */
export interface CheckRequest {
  /** The API's base URL, `…/v1`. */
  readonly url: string;
  readonly key?: string;
  /** Default: the first model in the list of the server. */
  readonly model?: string;
  /** As the option `--only`. */
  readonly only?: readonly string[];
  /** The profile that every answer must follow. */
  readonly profile?: "lean" | "exact";
}

/** The state that engines of every kind report. */
export function modelStateOf({ name, engine }: ServedEngine): ControlledModel {
  const { state, message } = engine.health();
  return {
    name,
    models: engine.models().map(({ id }) => id),
    state,
    ...(message !== undefined && { message }),
  };
}

/** The failure for a request to load or unload a model that is not local. */
export function notLocalModel(name: string): FailureError {
  return invalidRequest(`The model '${name}' is not a local model: it is neither loaded nor unloaded.`, "model");
}
