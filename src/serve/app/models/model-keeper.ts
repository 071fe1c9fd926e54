import type { ModelOpenError } from "../../../engines/llama/model-open-error.ts";
import { RestartPause } from "../../../engines/lifecycle/restart-pause.ts";
import type { Engine, ModelInfo } from "../../../wire/core/engine.ts";
import { FailureError } from "../../../wire/core/failure.ts";
import { shuttingDown } from "../../../engines/lifecycle/engine-lifecycle.ts";
import { queueFull } from "../../../engines/lifecycle/fair-queue.ts";
import type { Log } from "../../server/log.ts";
import {
  busyTooLong,
  loadFailed,
  memoryPinned,
  noFreeMemory,
  type OtherModels,
  notLoaded,
  openErrorOf,
  tooLarge,
} from "./load-failures.ts";
import { ModelSchedule } from "./model-schedule.ts";
import type { Effect, RefusalReason, ModelLoadState } from "./model-schedule.ts";
import type { ModelSource } from "../../../engines/llama/process/model-file.ts";

/** How a model comes and goes. */
export interface KeepSettings {
  readonly load: "eager" | "lazy" | "manual";
  /** The model is unloaded after it has been idle for this time, in milliseconds; `undefined`: never. */
  readonly idleUnloadMs?: number;
  /** The model is never unloaded in favor of another one. */
  readonly keep: boolean;
  /** The number of requests of one owner that may wait until the model is loaded; default: any number. */
  readonly maxWaiting?: number;
}

/** The right to use a loaded model: it stays until `release`. */
export interface Lease {
  readonly engine: Engine;
  release(): void;
}

/** One model of a keeper. */
export interface KeptModel {
  readonly id: string;
  readonly name: string;
  readonly loadable: Loadable;
  settings: KeepSettings;
  engine: Engine | undefined;
  /** How far the load is that runs. */
  progress: LoadProgress | undefined;
  readonly listeners: Set<(progress: LoadProgress) => void>;
  failure: ModelOpenError | undefined;
  /** By the clock of `performance.now`: no load is tried before. */
  retryAt: number;
  readonly pause: RestartPause;
  idleTimer: NodeJS.Timeout | undefined;
  /** In place of `settings.keep`, until that changes. */
  requestedKeep: boolean | undefined;
  /** In place of `idleUnloadMs`, until the model is unloaded; `Infinity`: it is not unloaded for being idle. */
  requestedIdleMs: number | undefined;
  /** Ends the load that runs. */
  readonly removal: AbortController;
  /** Settles when the model is removed; `undefined`: it is not being removed. */
  removed: Promise<void> | undefined;
  /** What runs: a measurement, a load or an unload. Settles when it has ended, and never rejects. */
  step: Promise<void> | undefined;
  /** The number of waiting requests of each owner ("": without keys). */
  readonly waiting: Map<string, number>;
}

export interface AskOptions {
  readonly signal?: AbortSignal;
  /** The owner of the client's key: each may have a number of waiting requests. */
  readonly owner?: string | undefined;
  /** Not a client: loads what is only loaded by hand, and without the pause after a failure. */
  readonly byHand?: boolean;
  /** False: only if no other model has to go. Default true. */
  readonly evicts?: boolean;
}

/** A waiting request. `settle` is called once: with an error if the request is refused. */
interface Ticket {
  readonly model: KeptModel;
  /** The owner of a waiting request; `undefined`: the ticket is not counted. */
  readonly owner?: string;
  readonly settle: (error?: FailureError) => void;
}

/** How an asking ended, or that it has not yet. */
interface Outcome {
  lease?: Lease;
  error?: FailureError;
  notify?: () => void;
}

/** Does what the schedule decides: loads and unloads models, and lets those wait who ask for one. */
export class ModelKeeper {
  readonly #schedule = new ModelSchedule();
  /** Those that are served, and those that have not left yet. */
  readonly #models = new Map<string, KeptModel>();
  readonly #tickets = new Map<number, Ticket>();
  readonly #log: Log;
  /** How long a request waits until its model fits into memory, in milliseconds. */
  waitMs: number = 5 * 60_000;
  /** Errors for clients may name other models. */
  namesModels: boolean = false;
  #lastTicket = 0;
  #lastModel = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  get budget(): number {
    return this.#schedule.budget;
  }

  setBudget(bytes: number): void {
    this.#run(this.#schedule.setBudget(bytes));
  }

  /** Bytes that loaded models take, as estimated. */
  get used(): number {
    return this.#schedule.used;
  }

  /** `size`: where it is known. */
  add(name: string, loadable: Loadable, settings: KeepSettings, size: number | undefined): KeptModel {
    const id = `${name} ${++this.#lastModel}`;
    const model: KeptModel = {
      id,
      name,
      loadable,
      settings,
      engine: undefined,
      progress: undefined,
      listeners: new Set(),
      failure: undefined,
      retryAt: 0,
      pause: new RestartPause(),
      idleTimer: undefined,
      requestedKeep: undefined,
      requestedIdleMs: undefined,
      removal: new AbortController(),
      removed: undefined,
      step: undefined,
      waiting: new Map(),
    };
    this.#models.set(id, model);
    this.#schedule.add(id, { keep: staysLoaded(model), ...(size !== undefined && { size }) });
    return model;
  }

  change(model: KeptModel, settings: KeepSettings): void {
    if (settings.keep !== model.settings.keep) model.requestedKeep = undefined;
    model.settings = settings;
    this.#run(this.#schedule.setKeep(model.id, staysLoaded(model)));
    this.#watchIdle(model);
  }

  /** Sets whether a model is kept, in place of its settings. */
  keep(model: KeptModel, keep: boolean): void {
    model.requestedKeep = keep;
    this.#run(this.#schedule.setKeep(model.id, staysLoaded(model)));
    this.#watchIdle(model);
  }

  /** Sets how long a model may be idle, in milliseconds, until it is unloaded. */
  keepLoaded(model: KeptModel, ms: number): void {
    model.requestedIdleMs = ms;
    this.#watchIdle(model);
  }

  /** Returns a lease of a model: synchronously if it is loaded, else a promise that resolves when it is. Rejects with `FailureError`. */
  ask(model: KeptModel, options: AskOptions = {}): Lease | Promise<Lease> {
    const { byHand = false, evicts = true, owner = "" } = options;
    const refusal = this.#refusal(model, byHand, owner);
    if (refusal) return Promise.reject(refusal);
    const ticket = ++this.#lastTicket;
    const outcome: Outcome = {};
    model.waiting.set(owner, (model.waiting.get(owner) ?? 0) + 1);
    this.#tickets.set(ticket, {
      model,
      owner,
      settle: (error) => {
        if (error) outcome.error = error;
        else outcome.lease = this.#lease(model);
        outcome.notify?.();
      },
    });
    this.#run(this.#schedule.ask(ticket, model.id, { evicts }));
    return outcome.lease ?? this.#wait(ticket, model, outcome, options.signal);
  }

  /** Unloads a model when its answers have ended, and resolves then. `signal` cancels the request. */
  async unload(model: KeptModel, signal?: AbortSignal): Promise<void> {
    const ticket = ++this.#lastTicket;
    await new Promise<void>((resolve) => {
      const leave = (): void => this.#leave(ticket, new FailureError(shuttingDown.failure));
      this.#tickets.set(ticket, {
        model,
        settle() {
          signal?.removeEventListener("abort", leave);
          resolve();
        },
      });
      signal?.addEventListener("abort", leave, { once: true });
      this.#run(this.#schedule.askOut(ticket, model.id));
    });
  }

  /**
   * Removes a model: open answers may finish within `graceMs`, and waiting requests are refused. Resolves when the model is out of memory,
   * also where it was being loaded or unloaded.
   */
  remove(model: KeptModel, graceMs: number): Promise<void> {
    return (model.removed ??= this.#remove(model, graceMs));
  }

  async #remove(model: KeptModel, graceMs: number): Promise<void> {
    clearTimeout(model.idleTimer);
    const isIn = this.stateOf(model) === "in";
    this.#run(this.#schedule.remove(model.id));
    model.removal.abort();
    if (isIn) this.#begin(model, this.#close(model, graceMs));
    // A load that is aborted too late is followed by an unload.
    while (model.step) await model.step;
    this.#models.delete(model.id);
  }

  stateOf({ id }: KeptModel): ModelLoadState {
    return this.#schedule.stateOf(id);
  }

  /** Bytes, where they are known. */
  sizeOf({ id }: KeptModel): number | undefined {
    return this.#schedule.sizeOf(id);
  }

  /** Answers that are being generated. */
  busyOf({ id }: KeptModel): number {
    return this.#schedule.busyOf(id);
  }

  waitingFor({ id }: KeptModel): number {
    return this.#schedule.waitingFor(id);
  }

  isWanted({ id }: KeptModel): boolean {
    return this.#schedule.isWanted(id);
  }

  /** Why a request for the model is not even queued. */
  #refusal(model: KeptModel, byHand: boolean, owner: string): FailureError | undefined {
    if (model.removal.signal.aborted) return new FailureError(shuttingDown.failure);
    if (byHand) return undefined;
    const waiting = model.waiting.get(owner) ?? 0;
    if (waiting >= (model.settings.maxWaiting ?? Infinity)) return new FailureError(queueFull(waiting));
    if (this.stateOf(model) !== "out") return undefined;
    if (model.settings.load === "manual") return notLoaded(model.name);
    const pauseMs = model.retryAt - performance.now();
    return model.failure && pauseMs > 0 ? loadFailed(model.name, model.failure, pauseMs) : undefined;
  }

  async #wait(ticket: number, model: KeptModel, outcome: Outcome, signal: AbortSignal | undefined): Promise<Lease> {
    const began = performance.now();
    const left = (): void => this.#leave(ticket, new FailureError(shuttingDown.failure));
    const look = (): void => {
      const state = this.stateOf(model);
      // The model is being loaded: continue to wait.
      if (state === "loading" || state === "preparing") timer = setTimeout(look, this.waitMs);
      else
        this.#leave(
          ticket,
          busyTooLong(
            model.name,
            performance.now() - began,
            this.#others(() => true),
          ),
        );
    };
    let timer = setTimeout(look, this.waitMs);
    signal?.addEventListener("abort", left, { once: true });
    if (signal?.aborted === true) left();
    if (!outcome.lease && !outcome.error) await new Promise<void>((resolve) => (outcome.notify = resolve));
    clearTimeout(timer);
    signal?.removeEventListener("abort", left);
    if (outcome.lease) return outcome.lease;
    throw outcome.error ?? new FailureError(shuttingDown.failure);
  }

  /** Ends the wait of a ticket with an error. */
  #leave(id: number, error: FailureError): void {
    const ticket = this.#takeTicket(id);
    if (!ticket) return;
    this.#run(this.#schedule.forget(id));
    ticket.settle(error);
  }

  /** Removes and returns a ticket. */
  #takeTicket(id: number): Ticket | undefined {
    const ticket = this.#tickets.get(id);
    if (!ticket) return undefined;
    this.#tickets.delete(id);
    const { model, owner } = ticket;
    if (owner === undefined) return ticket;
    const left = (model.waiting.get(owner) ?? 0) - 1;
    if (left > 0) model.waiting.set(owner, left);
    else model.waiting.delete(owner);
    return ticket;
  }

  #lease(model: KeptModel): Lease {
    clearTimeout(model.idleTimer);
    if (!model.engine) throw new Error(`${model.name} was granted before it was loaded.`);
    let isOver = false;
    return {
      engine: model.engine,
      release: () => {
        if (isOver) return;
        isOver = true;
        this.#run(this.#schedule.done(model.id));
        this.#watchIdle(model);
      },
    };
  }

  /** Starts the timer that unloads an idle model. */
  #watchIdle(model: KeptModel): void {
    clearTimeout(model.idleTimer);
    const idleMs = idleTimeOf(model);
    if (idleMs === null || this.stateOf(model) !== "in" || this.busyOf(model) > 0) return;
    model.idleTimer = setTimeout(() => this.#run(this.#schedule.idle(model.id)), idleMs);
    model.idleTimer.unref();
  }

  #run(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.do === "grant") this.#settle(effect.ticket);
      else if (effect.do === "refuse") this.#settle(effect.ticket, effect.why);
      else {
        const model = this.#models.get(effect.model);
        if (!model) continue;
        if (effect.do === "prepare") this.#begin(model, this.#prepare(model));
        else if (effect.do === "load") this.#begin(model, this.#load(model));
        else this.#begin(model, this.#close(model, 0));
      }
    }
  }

  /** Remembers what runs for a model. A step may begin the next one before it has ended itself. */
  #begin(model: KeptModel, step: Promise<void>): void {
    model.step = step;
    void step.then(() => {
      if (model.step === step) model.step = undefined;
    });
  }

  #settle(id: number, why?: RefusalReason): void {
    const ticket = this.#takeTicket(id);
    ticket?.settle(why && this.#failureOf(ticket.model, why));
  }

  /** The loaded models that `accepts` returns true for. */
  #others(accepts: (model: KeptModel) => boolean): OtherModels {
    const models = [...this.#models.values()].filter((model) => this.stateOf(model) === "in" && accepts(model));
    return { names: models.map(({ name }) => name), shown: this.namesModels };
  }

  #failureOf(model: KeptModel, why: RefusalReason): FailureError {
    if (why === "too-large")
      return (this.sizeOf(model) ?? 0) > this.budget
        ? tooLarge(model.name)
        : memoryPinned(model.name, this.#others(staysLoaded));
    if (why === "no-memory") return noFreeMemory(model.name, this.#others(() => true).names);
    if (why === "gone" || !model.failure) return new FailureError(shuttingDown.failure);
    return loadFailed(model.name, model.failure, model.retryAt - performance.now());
  }

  async #prepare(model: KeptModel): Promise<void> {
    try {
      const bytes = await model.loadable.measure(this.#loadOptions(model));
      this.#run(this.#schedule.prepared(model.id, bytes));
    } catch (error) {
      this.#failed(model, error);
    }
  }

  async #load(model: KeptModel): Promise<void> {
    const began = performance.now();
    try {
      // The file may have changed since it was measured.
      const bytes = await model.loadable.measure(this.#loadOptions(model));
      if (bytes !== this.sizeOf(model)) return this.#run(this.#schedule.resized(model.id, bytes));
      model.engine = await model.loadable.load(this.#loadOptions(model));
      model.failure = undefined;
      model.pause.succeeded();
      model.progress = undefined;
      const [{ device } = {}] = model.engine.models();
      const ms = Math.round(performance.now() - began);
      this.#log.info({ model: model.name, bytes, ms, ...(device !== undefined && { device }) }, "model loaded");
      this.#run(this.#schedule.loaded(model.id));
      this.#watchIdle(model);
    } catch (error) {
      this.#failed(model, error);
    }
  }

  #failed(model: KeptModel, error: unknown): void {
    const now = performance.now();
    model.failure = openErrorOf(error);
    model.retryAt = now + model.pause.next(now);
    model.progress = undefined;
    this.#run(this.#schedule.failed(model.id));
  }

  /** Closes the engine of a model, whose open answers may finish within `graceMs`. */
  async #close(model: KeptModel, graceMs: number): Promise<void> {
    const { engine } = model;
    clearTimeout(model.idleTimer);
    // Answers that end within the grace period are still of the model.
    if (graceMs === 0) model.engine = undefined;
    try {
      await engine?.close(graceMs);
      this.#log.info({ model: model.name }, "model unloaded");
    } catch (error) {
      this.#log.error({ model: model.name, cause: String(error) }, "model did not close");
    }
    model.engine = undefined;
    model.requestedIdleMs = undefined;
    this.#run(this.#schedule.unloaded(model.id));
  }

  #loadOptions(model: KeptModel): LoadOptions {
    return {
      signal: model.removal.signal,
      onProgress(progress) {
        model.progress = progress;
        for (const listener of model.listeners) listener(progress);
      },
    };
  }
}

/** The maximum delay of a timer in Node. */
const maxTimerMs = 2 ** 31 - 1;

/** The idle time after which a model is unloaded, in milliseconds; null: it is not unloaded for being idle. */
export function idleTimeOf(model: KeptModel): number | null {
  const { settings, requestedIdleMs } = model;
  const { idleUnloadMs, load } = settings;
  const ms = load === "manual" ? idleUnloadMs : (requestedIdleMs ?? idleUnloadMs);
  return isKept(model) || ms === undefined || ms > maxTimerMs ? null : ms;
}

/** Whether a model is kept, by its settings or by a request. */
export function isKept({ settings, requestedKeep }: KeptModel): boolean {
  return requestedKeep ?? settings.keep;
}

/** True for models that are never unloaded in favor of another one. */
function staysLoaded(model: KeptModel): boolean {
  return isKept(model) || model.settings.load === "manual";
}

/** Progress of a model's download or load. */
export interface LoadProgress {
  readonly phase: "download" | "load";
  /** 0 to 1. */
  readonly fraction: number;
}

export interface LoadOptions {
  readonly onProgress: (progress: LoadProgress) => void;
  /** Aborts the load. */
  readonly signal: AbortSignal;
}

/** A model that can be loaded, and loaded again. Every method rejects with `ModelOpenError`. */
export interface Loadable {
  /** The model as clients see it before it is loaded. */
  readonly info: ModelInfo;
  /** Where its file comes from. */
  readonly source: ModelSource;
  /** Returns the memory that the loaded model needs, in bytes. Downloads the file if necessary; fast if nothing has changed. */
  measure(options: LoadOptions): Promise<number>;
  load(options: LoadOptions): Promise<Engine>;
}
