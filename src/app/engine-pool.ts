import type { ModelConfig } from "../config/model-schema.ts";
import { ModelDirectory } from "../server/model-directory.ts";
import type { ServedEngine } from "../server/model-directory.ts";
import { openServedEngine } from "./open-engine.ts";
import type { OpenOptions } from "./open-options.ts";

/** How long a model that a new configuration no longer names may finish its open streams, in milliseconds. */
const patience = 24 * 3_600_000;

/** The engines of a configuration, and of the one that follows it. */
export class EnginePool {
  readonly #options: OpenOptions;
  #open = new Map<unknown, ServedEngine>();

  constructor(options: OpenOptions) {
    this.#options = options;
  }

  /**
   * Opens what the models need and is not open yet, and closes what they no longer need. Rejects with the first failure, and then
   * everything is as it was before.
   */
  async use(models: readonly ModelConfig[]): Promise<ModelDirectory> {
    const next = new Map<unknown, ServedEngine>();
    const fresh: ServedEngine[] = [];
    try {
      // One after another: two models that load at once fight for memory and disk.
      for (const model of models) {
        const key = keyOf(model);
        let engine = this.#open.get(key) ?? next.get(key);
        if (!engine) fresh.push((engine = await openServedEngine(model, this.#options)));
        next.set(key, engine);
      }
    } catch (error) {
      await Promise.all(fresh.map(({ engine }) => engine.close(0)));
      throw error;
    }
    const gone = [...this.#open].filter(([key]) => !next.has(key));
    this.#open = next;
    for (const [, { name, engine }] of gone) {
      engine.close(patience).catch((error: unknown) => {
        this.#options.log.error({ error: String(error) }, `${name} did not close`);
      });
    }
    return new ModelDirectory([...next.values()]);
  }

  async close(graceMs: number): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ engine }) => engine.close(graceMs)));
  }
}

/** Entries with equal keys are the same model. An entry that holds a function or an engine equals only that same object. */
function keyOf(model: ModelConfig): unknown {
  if (model.kind === "engine") return model.engine;
  if (model.kind === "program" && typeof model.program !== "string") return model.program;
  return JSON.stringify(model);
}
