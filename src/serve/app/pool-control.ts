import { ConfigError } from "../config/config-error.ts";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import type { ModelControl, ControlledModel, ControlledModels, ControlTask } from "../server/admin/model-control.ts";
import { notLocalModel, modelStateOf } from "../server/admin/model-control.ts";
import type { ModelDirectory, ServedEngine } from "../server/model-directory.ts";
import { modelDoesNotExist } from "../../wire/apis/failures.ts";
import type { EnginePool } from "./engine-pool.ts";
import { LoadableEngine } from "./models/loadable-engine.ts";
import { idleTimeOf, isKept } from "./models/model-keeper.ts";

export interface ControlOptions {
  readonly pool: EnginePool;
  /** As it is now. */
  readonly directory: () => ModelDirectory;
  /** Reads the configuration again and goes over to it; absent: it came from code. */
  readonly reload?: (() => Promise<void>) | undefined;
}

/** The admin API's hands on a server's models. */
export class PoolControl implements ModelControl {
  readonly #options: ControlOptions;

  constructor(options: ControlOptions) {
    this.#options = options;
  }

  async list(): Promise<ControlledModels> {
    const { pool, directory } = this.#options;
    const budget = pool.locals?.keeper.budget ?? Infinity;
    const pulls = pool.locals?.pulls.running ?? [];
    return {
      memory: { limit: Number.isFinite(budget) ? budget : null, used: pool.locals?.keeper.used ?? 0 },
      models: directory().engines.map((from) => this.#stateOf(from)),
      ...(pulls.length > 0 && { pulls }),
    };
  }

  async load(name: string, { signal, report: notify }: ControlTask): Promise<ControlledModel> {
    const { from, engine } = this.#localNamed(name);
    const { keeper } = this.#locals();
    const { model } = engine;
    model.listeners.add(notify);
    try {
      if (keeper.stateOf(model) !== "in") notify({ phase: "wait" });
      const lease = await keeper.ask(model, { signal, byHand: true });
      lease.release();
    } catch (error) {
      throw inFull(error);
    } finally {
      model.listeners.delete(notify);
    }
    return this.#stateOf(from);
  }

  async unload(name: string, { signal, report: notify }: ControlTask): Promise<ControlledModel> {
    const { from, engine } = this.#localNamed(name);
    const { keeper } = this.#locals();
    if (keeper.busyOf(engine.model) > 0) notify({ phase: "wait" });
    await keeper.unload(engine.model, signal);
    return this.#stateOf(from);
  }

  async keepLoaded(name: string, ms: number): Promise<void> {
    const { engine } = this.#options.directory().find(name)?.from ?? {};
    if (engine instanceof LoadableEngine) this.#locals().keeper.keepLoaded(engine.model, ms);
  }

  async keep(name: string, keep: boolean): Promise<ControlledModel> {
    const { from, engine } = this.#localNamed(name);
    this.#locals().keeper.keep(engine.model, keep);
    return this.#stateOf(from);
  }

  async pull(name: string, { signal, report: notify }: ControlTask): Promise<{ readonly path: string }> {
    const { pool, directory } = this.#options;
    const known = directory().find(name)?.from.engine;
    const source =
      known instanceof LoadableEngine ? known.model.loadable.source : /^hf:/i.test(name) ? { model: name } : undefined;
    if (!source) throw modelDoesNotExist(name);
    if (!source.model.startsWith("hf:"))
      throw invalidRequest(`The model '${name}' is a file of this machine: there is nothing to pull.`, "model");
    const { pulls } = await pool.openLocals();
    const path = await pulls
      .pull(
        source,
        ({ bytes, totalBytes }) =>
          notify({
            phase: "download",
            ...(totalBytes > 0 && { fraction: bytes / totalBytes }),
            bytes,
            total_bytes: totalBytes,
          }),
        signal,
      )
      .catch((error: unknown) => {
        throw failureOf(error, 502);
      });
    return { path };
  }

  async reload(): Promise<{ readonly models: readonly string[] }> {
    const { reload, directory } = this.#options;
    if (!reload)
      throw invalidRequest("There is no configuration file to read again: the server was started without one.");
    await reload().catch((error: unknown) => {
      throw failureOf(error, 400, "The configuration was not reloaded, and nothing has changed. ");
    });
    return {
      models: directory()
        .list()
        .map(({ info }) => info.id),
    };
  }

  #stateOf(served: ServedEngine): ControlledModel {
    const { engine } = served;
    const common = modelStateOf(served);
    if (!(engine instanceof LoadableEngine)) return common;
    const { model } = engine;
    const { keeper } = this.#locals();
    const { load } = model.settings;
    const idleUnloadMs = idleTimeOf(model);
    const [{ device } = {}] = engine.models();
    return {
      ...common,
      ...(device !== undefined && { device }),
      memory: keeper.sizeOf(model) ?? null,
      load,
      keep: isKept(model),
      idle_unload_ms: idleUnloadMs,
      ...(model.progress && { progress: model.progress }),
      busy: keeper.busyOf(model),
      waiting: keeper.waitingFor(model),
    };
  }

  #localNamed(name: string): { readonly from: ServedEngine; readonly engine: LoadableEngine } {
    const all = this.#options.directory();
    const from = all.find(name)?.from ?? all.engines.find((each) => each.name === name);
    if (!from) throw modelDoesNotExist(name);
    const { engine } = from;
    if (engine instanceof LoadableEngine) return { from, engine };
    throw notLocalModel(name);
  }

  #locals(): NonNullable<EnginePool["locals"]> {
    const { locals } = this.#options.pool;
    if (!locals) throw new Error("There are no local models.");
    return locals;
  }
}

/** For the operator of the server, so the error contains the cause and its paths. */
function inFull(error: unknown): unknown {
  if (!(error instanceof FailureError) || typeof error.failure.cause !== "string") return error;
  return new FailureError({ ...error.failure, message: error.failure.cause });
}

function failureOf(error: unknown, status: 400 | 502, before = ""): FailureError {
  if (error instanceof FailureError) return error;
  const message = before + (error instanceof Error ? error.message : String(error));
  const kind = status === 400 ? "invalid-request" : "bad-answer";
  const code = error instanceof ConfigError ? "invalid_configuration" : null;
  return new FailureError({ message, status, kind, param: null, code });
}

/** The same work, which waits until what was begun earlier is over, however that ended. */
export function oneAfterAnother<T>(work: (input: T) => Promise<void>): (input: T) => Promise<void> {
  let earlier = Promise.resolve();
  return (input) => {
    const result = earlier.then(() => work(input));
    earlier = result.catch(() => {});
    return result;
  };
}
