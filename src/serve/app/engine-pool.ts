import type { LocalModelConfig, ModelConfig } from "../config/model-schema.ts";
import type { Config } from "../config/schema.ts";
import { ModelDirectory } from "../server/model-directory.ts";
import type { LocalModels, OpenedLocal } from "./models/local-models.ts";
import { nameOf, openEngine, servedEngine } from "./open-engine.ts";
import type { OpenedEngine } from "./open-options.ts";
import type { PoolOptions } from "./runtime.ts";

/** How long a model that a new configuration no longer names may finish its open streams, in milliseconds. */
const patience = 24 * 3_600_000;

type Opened = OpenedEngine | OpenedLocal;

/** The engines of a configuration, and of the one that follows it. */
export class EnginePool {
  readonly #options: PoolOptions;
  #open = new Map<unknown, Opened>();
  #locals: LocalModels | undefined;
  /** What is open for a configuration that is not in use yet. */
  readonly #fresh = new Set<ReadonlyMap<unknown, Opened>>();
  #isClosed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Present as soon as a configuration has named a local model. */
  get locals(): LocalModels | undefined {
    return this.#locals;
  }

  /** What local models need, opened when it is needed first. */
  async openLocals(): Promise<LocalModels> {
    const { openLocalModels } = await this.#options.runtime.localModels();
    return (this.#locals ??= openLocalModels(this.#options));
  }

  /**
   * Opens what the models need and is not open yet, and closes what they no longer need. Rejects with the first failure, and then
   * everything is as it was before. An upstream that does not answer is no failure: it is taken in when it comes.
   *
   * `isForThisMachine`: clients may learn the names of the loaded models. `check` throws for models that do not fit the configuration.
   */
  async use(
    { models, memory = Infinity, loadWait }: Pick<Config, "models" | "memory" | "loadWait">,
    isForThisMachine: boolean,
    check: (directory: ModelDirectory) => void = () => {},
  ): Promise<ModelDirectory> {
    const next = new Map<unknown, Opened>();
    const fresh = new Map<unknown, Opened>();
    const before = this.#open;
    const budget = this.#locals?.keeper.budget ?? Infinity;
    this.#fresh.add(fresh);
    try {
      await this.#openAll(models, next, fresh);
      const served = models.flatMap((model) => {
        const opened = next.get(keyOf(model));
        return opened ? [servedEngine(model, opened)] : [];
      });
      check(new ModelDirectory(served));
      const locals = [...next.values()].filter(isLocal);
      this.#locals?.checkBudget(locals, memory);
      if (this.#locals) Object.assign(this.#locals.keeper, { waitMs: loadWait, namesModels: isForThisMachine });
      this.#locals?.keeper.setBudget(memory);
      // Sequentially: models that load in parallel compete for memory and disk.
      for (const model of models) {
        const opened = next.get(keyOf(model));
        if (model.kind === "local" && (model.load ?? "eager") === "eager" && opened && isLocal(opened))
          await this.#locals?.loadEagerly(opened);
      }
      this.#open = next;
    } catch (error) {
      this.#locals?.keeper.setBudget(budget);
      await Promise.all([...fresh.values()].map(({ engine }) => engine.close(0)));
      throw error;
    } finally {
      this.#fresh.delete(fresh);
    }
    const gone = [...before].filter(([key]) => !next.has(key));
    for (const [, { engine }] of gone) {
      engine.close(patience).catch((error: unknown) => {
        this.#options.log.error({ error: String(error) }, "a model did not close");
      });
    }
    return new ModelDirectory(this.#served(models));
  }

  /** Closes all engines, those that are still being opened as soon as they are open. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    const all = [this.#open, ...this.#fresh].flatMap((opened) => [...opened.values()]);
    await Promise.all(all.map(({ engine }) => engine.close(graceMs)));
  }

  async #openAll(
    models: readonly ModelConfig[],
    next: Map<unknown, Opened>,
    fresh: Map<unknown, Opened>,
  ): Promise<void> {
    const opening = new Map<unknown, Promise<unknown>>();
    for (const model of models) {
      const key = keyOf(model);
      const known = this.#open.get(key) ?? next.get(key);
      if (known) next.set(key, known);
      else if (!opening.has(key)) {
        const opened = this.#openOne(model).then(async (one) => {
          if (this.#isClosed) await one.engine.close(0);
          next.set(key, one);
          fresh.set(key, one);
        });
        // A failure is looked at below, when all are open that can be.
        opened.catch(() => {});
        // In parallel, since an upstream that is down takes until its time-out.
        opening.set(key, opened);
        if (model.kind !== "upstream") await opened;
      }
    }
    const failed = (await Promise.allSettled(opening.values())).find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }

  async #openOne(model: ModelConfig): Promise<Opened> {
    if (model.kind !== "local") return openEngine(model, this.#options);
    const locals = await this.openLocals();
    return locals.open(model, nameOf(model));
  }

  /** The engines with how their answers look, each entry once. */
  #served(models: readonly ModelConfig[]): ReturnType<typeof servedEngine>[] {
    const entries = new Map<unknown, ReturnType<typeof servedEngine>>();
    for (const model of models) {
      const opened = this.#open.get(keyOf(model));
      const entry = model.kind === "local" ? JSON.stringify(model) : keyOf(model);
      if (!opened || entries.has(entry)) continue;
      if (model.kind === "local" && isLocal(opened)) this.#locals?.change(opened, model);
      entries.set(entry, servedEngine(model, opened));
    }
    return [...entries.values()];
  }
}

function isLocal(opened: Opened): opened is OpenedLocal {
  return "model" in opened;
}

/** Entries with equal keys share an engine. An entry that holds a function or an engine equals only that same object. */
function keyOf(model: ModelConfig): unknown {
  if (model.kind === "engine") return model.engine;
  if (model.kind === "program" && typeof model.program !== "string") return model.program;
  if (model.kind !== "local") return JSON.stringify(model);
  return JSON.stringify(
    Object.entries({ ...model, name: nameOf(model) }).filter(([member]) => !independent.has(member)),
  );
}

/** Settings that can change while the model stays loaded. */
const independent: ReadonlySet<string> = new Set<keyof LocalModelConfig>([
  "load",
  "idleUnload",
  "keep",
  "aliases",
  "wire",
  "systemFingerprint",
  "serviceTier",
  "logprobsKey",
  "standsFor",
  "reasoningFields",
  "fallbacks",
  "fallbackOn",
]);
