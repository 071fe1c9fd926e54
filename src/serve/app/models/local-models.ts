import type { LocalModelConfig } from "../../config/model-schema.ts";
import { defaultQueueLimit, defaultSlots } from "../../../engines/llama/defaults.ts";
import { ModelOpenError } from "../../../engines/llama/model-open-error.ts";
import type { OpenOptions } from "../open-options.ts";
import { LoadableEngine } from "./loadable-engine.ts";
import { gibibytes, LoadableLocalModel } from "./local-model.ts";
import { ModelKeeper } from "./model-keeper.ts";
import type { KeepSettings } from "./model-keeper.ts";
import { Pulls } from "./pulls.ts";

/** A configured local model, loaded or not. */
export interface OpenedLocal {
  readonly engine: LoadableEngine;
  readonly model: LoadableLocalModel;
}

/** All that a server needs for its local models. */
export class LocalModels {
  readonly keeper: ModelKeeper;
  readonly pulls: Pulls;
  readonly #options: OpenOptions;

  constructor(options: OpenOptions) {
    this.#options = options;
    this.keeper = new ModelKeeper(options.log);
    this.pulls = new Pulls((line, level, fields) => options.log[level]({ ...fields }, line));
  }

  /** Makes a model known, and loads nothing. Rejects with `ModelOpenError` where its file is missing or no GGUF. */
  async open(config: LocalModelConfig, name: string): Promise<OpenedLocal> {
    const model = new LoadableLocalModel(config, name, this.#options, this.pulls);
    const size = await model.look();
    const kept = this.keeper.add(name, model, settingsOf(config), size);
    return { model, engine: new LoadableEngine(kept, this.keeper) };
  }

  change({ engine }: OpenedLocal, config: LocalModelConfig): void {
    this.keeper.change(engine.model, settingsOf(config));
  }

  /** Throws `ModelOpenError` for a model that needs more than the budget, and for models that stay and need more together. */
  checkBudget(models: readonly OpenedLocal[], budget: number): void {
    let staying = 0;
    for (const { engine, model } of models) {
      const size = this.keeper.sizeOf(engine.model) ?? 0;
      if (size > budget) throw tooLargeFor(engine.model.name, model, budget);
      if (engine.model.settings.keep) staying += size;
    }
    if (staying > budget)
      throw new ModelOpenError(
        "not-enough-memory",
        `The models that are kept (keep: true) need ${gibibytes(staying)} together, but the memory for models is ${gibibytes(budget)}.`,
      );
  }

  /**
   * Loads a model at the start. If another one would have to be unloaded, the first request loads it. Rejects with `ModelOpenError`.
   */
  async loadEagerly({ engine, model }: OpenedLocal): Promise<void> {
    const kept = engine.model;
    try {
      const lease = await this.keeper.ask(kept, { byHand: true, evicts: false });
      lease.release();
    } catch (error) {
      if (kept.failure) throw kept.failure;
      const size = this.keeper.sizeOf(kept) ?? 0;
      if (size > this.keeper.budget) throw tooLargeFor(kept.name, model, this.keeper.budget);
      const free = gibibytes(Math.max(0, this.keeper.budget - this.keeper.used));
      const line = `there is not enough free memory next to the models that are loaded (${gibibytes(size)} needed, ${free} free); its first request loads it`;
      this.#options.log.warn({ model: kept.name, reason: String(error) }, line);
    }
  }
}

/** Opens the local models; replaced in bundles for the web. */
export function openLocalModels(options: OpenOptions): LocalModels {
  return new LocalModels(options);
}

function settingsOf(config: LocalModelConfig): KeepSettings {
  const { load = "eager", idleUnload, keep = false, slots = defaultSlots, queueLimit = defaultQueueLimit } = config;
  // As many as a loaded model takes: those that run, and those that wait for a slot.
  const maxWaiting = slots + queueLimit;
  return { load, keep, maxWaiting, ...(idleUnload !== undefined && { idleUnloadMs: idleUnload }) };
}

function tooLargeFor(name: string, model: LoadableLocalModel, budget: number): ModelOpenError {
  return new ModelOpenError(
    "not-enough-memory",
    `${name} needs ${model.needInWords()}, but the memory for models is ${gibibytes(budget)} (--memory): use fewer slots, a smaller context, or a smaller quantization.`,
  );
}
