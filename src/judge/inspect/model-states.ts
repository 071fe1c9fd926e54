import type { UpstreamUrl } from "../../wire/core/engine.ts";

/** The models of a server, as `GET /admin/models/live` reports them. Absent members are not known, or do not apply. */
export interface ModelStates {
  /** In bytes, estimated; null: no limit. */
  readonly memory: { readonly limit: number | null; readonly used: number };
  readonly models: readonly ModelState[];
  /** Downloads in progress. */
  readonly pulls: readonly PullState[];
}

/** One entry of the configuration's `models`. */
export interface ModelState {
  readonly name: string;
  readonly kind?: "local" | "upstream" | "program" | "engine";
  /** The file or repository of a local model, the file of a program. */
  readonly source?: string;
  /** The names for clients, without aliases. */
  readonly models: readonly string[];
  readonly aliases?: readonly string[];
  readonly fallbacks?: {
    /** For all models, or by model. */
    readonly models: readonly string[] | Readonly<Record<string, readonly string[]>>;
    /** Default: connection, timeout, server-error, rate-limit, not-found. */
    readonly reasons?: readonly string[] | undefined;
  };
  readonly state: string;
  /** Why it is not ready. */
  readonly message?: string;
  /** Of a load or download in progress. `fraction`: 0 to 1. */
  readonly progress?: { readonly phase: "download" | "load"; readonly fraction: number };
  /** The memory of the loaded model, in bytes. */
  readonly memory?: number;
  readonly load?: "eager" | "lazy" | "manual";
  /** It is not unloaded for another model, nor for being idle. */
  readonly keep?: boolean;
  /** Absent: it is not unloaded for being idle. */
  readonly idle_unload_ms?: number;
  /** In tokens. */
  readonly context_length?: number;
  /** Requests in progress. */
  readonly busy?: number;
  /** Requests that wait for a slot, or until the model is loaded. */
  readonly queued?: number;
  /** It is unloaded when its answers have ended. */
  readonly leaving?: true;
  readonly slots?: {
    readonly busy: number;
    readonly total: number;
    /** Local models only. */
    readonly each?: readonly SlotReport[];
  };
  /** Restarts of a local model's process. */
  readonly restarts?: number;
  readonly urls?: readonly UpstreamUrl[];
}

/** A slot of a local model. Counts in tokens. */
export interface SlotReport {
  readonly id: number;
  readonly state: "idle" | "prompt" | "generating";
  readonly context_size: number;
  /** Prompt and answer. */
  readonly context_used: number;
  readonly prompt_tokens: number;
  /** Of the prompt: found in the cache, and processed (the cached ones included). */
  readonly cached_tokens: number;
  readonly processed_tokens: number;
  readonly generated_tokens: number;
  /** In the last two seconds: of the prompt while it is processed, then of the answer. */
  readonly tokens_per_second?: number;
}

export interface PullState {
  readonly model: string;
  readonly bytes: number;
  /** 0: not known yet. */
  readonly total_bytes: number;
  /** In the last two seconds. */
  readonly bytes_per_second?: number;
}

/** The events of the stream. */
export type ModelStatesEvent =
  | ({ readonly type: "snapshot" } & ModelStates)
  | {
      readonly type: "changed";
      readonly memory?: ModelStates["memory"];
      readonly pulls?: ModelStates["pulls"];
      /** By position in the snapshot: a JSON Merge Patch (RFC 7396) of the model. */
      readonly models?: readonly ({ readonly at: number } & object)[];
    };

/** The event that leads from one state to another: a new snapshot if the list of models differs; undefined if nothing has changed. */
export function changeBetween(before: ModelStates, after: ModelStates): ModelStatesEvent | undefined {
  const entries = ({ models }: ModelStates): string => JSON.stringify(models.map(({ name, kind }) => [name, kind]));
  if (entries(before) !== entries(after)) return { type: "snapshot", ...after };
  const models = after.models.flatMap((model, at) => {
    const patch = mergePatch(before.models[at] ?? {}, model);
    return patch ? [{ at, ...patch }] : [];
  });
  const memory = sameJson(before.memory, after.memory) ? {} : { memory: after.memory };
  const pulls = sameJson(before.pulls, after.pulls) ? {} : { pulls: after.pulls };
  const isSame = models.length === 0 && !("memory" in memory) && !("pulls" in pulls);
  return isSame ? undefined : { type: "changed", ...memory, ...pulls, ...(models.length > 0 && { models }) };
}

/** The state after an event. */
export function stateAfter(before: ModelStates | undefined, event: ModelStatesEvent): ModelStates | undefined {
  if (event.type === "snapshot") {
    const { memory, models, pulls } = event;
    return { memory, models, pulls };
  }
  if (!before) return undefined;
  const models = [...before.models];
  for (const { at, ...patch } of event.models ?? []) models[at] = applyPatch(models[at], patch) as ModelState;
  return { memory: event.memory ?? before.memory, pulls: event.pulls ?? before.pulls, models };
}

type Members = Readonly<Record<string, unknown>>;

/** The JSON Merge Patch from one object to another, neither of which has null members; undefined if they are equal. */
export function mergePatch(before: object, after: object): object | undefined {
  const patch: Record<string, unknown> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [was, is] = [(before as Members)[name], (after as Members)[name]];
    if (is === undefined) {
      if (was !== undefined) patch[name] = null;
    } else if (isMembers(was) && isMembers(is)) {
      const inner = mergePatch(was, is);
      if (inner) patch[name] = inner;
    } else if (!sameJson(was, is)) patch[name] = is;
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}

/** Applies a JSON Merge Patch. */
export function applyPatch(before: unknown, patch: unknown): unknown {
  if (!isMembers(patch)) return patch;
  const after: Record<string, unknown> = isMembers(before) ? { ...before } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete after[name];
    else after[name] = applyPatch(after[name], value);
  }
  return after;
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function sameJson(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
