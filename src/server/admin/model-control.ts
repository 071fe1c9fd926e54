import { invalidRequest } from "../../core/failure.ts";
import type { FailureError } from "../../core/failure.ts";
import type { ServedEngine } from "../model-directory.ts";

/** What the admin API does to the models. Every promise rejects with `FailureError`, in words for whoever runs the server. */
export interface ModelControl {
  list(): Promise<ModelStates>;
  /** `name`: one that clients may use. Resolves when the model is loaded. */
  load(name: string, task: Task): Promise<ModelState>;
  /** Resolves when it is unloaded, which waits for its answers to end. */
  unload(name: string, task: Task): Promise<ModelState>;
  /** `name`: of a served model, or `hf:owner/repo[:quant]`. Resolves with the file, once it is here. */
  pull(name: string, task: Task): Promise<{ readonly path: string }>;
  /** Reads the configuration again; resolves with the names of the models that are served then. */
  reload(): Promise<{ readonly models: readonly string[] }>;
}

/** Something that takes its time, and whoever waits for it. */
export interface Task {
  readonly signal: AbortSignal;
  readonly tell: (progress: Progress) => void;
}

export interface Progress {
  /** `wait`: for room, or for answers to end. */
  readonly phase: "wait" | "download" | "load";
  /** 0 to 1, where it is known. */
  readonly fraction?: number;
  readonly bytes?: number;
  readonly total_bytes?: number;
}

export interface ModelStates {
  /** In bytes, as estimated; null: there is no limit. */
  readonly memory: { readonly limit: number | null; readonly used: number };
  readonly models: readonly ModelState[];
}

/** A member that is absent does not apply: only local models are loaded and unloaded. */
export interface ModelState {
  readonly name: string;
  /** The names that clients may use, but for aliases. */
  readonly models: readonly string[];
  readonly state: string;
  readonly message?: string;
  /** Bytes that it takes when it is loaded; null: not known before it is downloaded. */
  readonly memory?: number | null;
  readonly load?: "eager" | "lazy" | "manual";
  readonly keep?: boolean;
  readonly idle_unload_ms?: number | null;
  /** Answers that are being generated. */
  readonly busy?: number;
  /** Requests that wait for it to be loaded. */
  readonly waiting?: number;
}

/** Checks other servers, as `truewire check` does. */
export interface Checker {
  /**
   * Tells events, as `POST /admin/check` sends them (docs/checking.md), until the check has ended; `signal` ends it at once. Throws
   * `FailureError`, in words for whoever asked.
   */
  check(asked: AskedCheck, signal: AbortSignal): AsyncIterable<object>;
}

/** What is to be checked. The key is kept for no longer than the check takes. */
export interface AskedCheck {
  /** The API's base URL, `…/v1`. */
  readonly url: string;
  readonly key?: string;
  /** Default: the first that the server lists. */
  readonly model?: string;
  /** As `--only` has it. */
  readonly only?: readonly string[];
  /** The form that every answer must have. */
  readonly profile?: "lean" | "exact";
}

/** What every kind of engine tells of itself. */
export function stateOf({ name, engine }: ServedEngine): ModelState {
  const { state, message } = engine.health();
  return {
    name,
    models: engine.models().map(({ id }) => id),
    state,
    ...(message !== undefined && { message }),
  };
}

/** Of a model that is asked to be loaded or unloaded, and lives elsewhere. */
export function notOfThisMachine(name: string): FailureError {
  return invalidRequest(
    `The model '${name}' is none of this machine's files: it is neither loaded nor unloaded.`,
    "model",
  );
}
