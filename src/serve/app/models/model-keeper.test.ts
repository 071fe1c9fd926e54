import { expect, test } from "vitest";
import { ModelOpenError } from "../../../engines/llama/model-open-error.ts";
import type { Engine, ModelInfo } from "../../../wire/core/engine.ts";
import { FailureError } from "../../../wire/core/failure.ts";
import { silentLog } from "../../server/log.ts";
import { ModelKeeper } from "./model-keeper.ts";
import type { KeepSettings, Lease, Loadable, LoadOptions } from "./model-keeper.ts";

const info: ModelInfo = { id: "m", created: 0, ownedBy: "test", endpoints: ["chat"] };
const lazy: KeepSettings = { load: "lazy", keep: false };

/** A model whose steps end when the test says so. */
class SteppedModel implements Loadable {
  readonly info = info;
  readonly source = { model: "m" };
  readonly begun: string[] = [];
  size = 1;
  /** A load cannot be ended. */
  ignoresAbort = false;
  readonly #ends: (() => void)[] = [];

  /** Ends the step that has begun first. */
  async endStep(): Promise<void> {
    await settled();
    const end = this.#ends.shift();
    if (!end) throw new Error(`No step is running. Begun: ${this.begun.join(", ")}.`);
    end();
    await settled();
  }

  async measure(): Promise<number> {
    await this.#step("measure");
    return this.size;
  }

  /** Fails after the removal, as a process that is killed does. */
  async load({ signal }: LoadOptions): Promise<Engine> {
    await this.#step("load");
    if (signal.aborted && !this.ignoresAbort) throw new ModelOpenError("load-failed", "The load was ended.");
    return this.engine();
  }

  engine(): Engine {
    return {
      models: () => [info],
      generate: () => {
        throw new Error("No test generates.");
      },
      health: () => ({ state: "ready" }),
      close: () => this.#step("close"),
    };
  }

  async #step(name: string): Promise<void> {
    this.begun.push(name);
    await new Promise<void>((resolve) => this.#ends.push(resolve));
  }
}

/** Runs everything that only waits for promises. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

function isSettled(promise: Promise<unknown>): () => boolean {
  let is = false;
  const settle = (): void => void (is = true);
  promise.then(settle, settle);
  return () => is;
}

function codeOf(error: unknown): unknown {
  return error instanceof FailureError ? [error.failure.status, error.failure.code] : error;
}

// Any number of requests could wait for a model that is not loaded, each with its body in memory; only loaded models had a limit, and no
// test sent more than a few requests.
test("each owner may have as many waiting requests as the model takes; more are refused with 429", async () => {
  const keeper = new ModelKeeper(silentLog);
  const model = new SteppedModel();
  const kept = keeper.add("m", model, { ...lazy, maxWaiting: 3 }, 1);
  const ask = (owner?: string): Promise<Lease> => Promise.resolve(keeper.ask(kept, { owner }));
  const [first, ...others] = [ask(), ask(), ask()];
  expect(await ask().catch(codeOf)).toEqual([429, "rate_limit_exceeded"]);
  const ofOther = ask("other");
  expect(keeper.waitingFor(kept)).toBe(4);
  const left = new AbortController();
  const byHand = keeper.ask(kept, { byHand: true, signal: left.signal });
  left.abort();
  await expect(byHand).rejects.toThrow();
  await model.endStep();
  await model.endStep();
  for (const lease of await Promise.all([first, ...others, ofOther])) lease?.release();
  // Those that have left or are answered leave their places.
  for (let i = 0; i < 10; i++) (await ask()).release();
});

// A removed model that was being loaded counted as removed at once, so a server stopped, or loaded the model's successor, while the
// process of the first one still took its memory. The random test removes no model.
test("remove() waits for the load that runs", async () => {
  const keeper = new ModelKeeper(silentLog);
  const model = new SteppedModel();
  const kept = keeper.add("m", model, lazy, 1);
  const asked = Promise.resolve(keeper.ask(kept));
  await model.endStep();
  const removal = keeper.remove(kept, 0);
  const isRemoved = isSettled(removal);
  expect(await asked.catch(codeOf)).toEqual([503, "shutting_down"]);
  await settled();
  expect(isRemoved()).toBe(false);
  const again = isSettled(keeper.remove(kept, 0));
  await model.endStep();
  await removal;
  expect([model.begun, again()]).toEqual([["measure", "load"], true]);
  expect(keeper.used).toBe(0);
});

test("remove() waits for the unload of a model whose load could not be ended in time", async () => {
  const keeper = new ModelKeeper(silentLog);
  const model = new SteppedModel();
  model.ignoresAbort = true;
  const kept = keeper.add("m", model, lazy, 1);
  const asked = Promise.resolve(keeper.ask(kept)).catch(codeOf);
  await model.endStep();
  const isRemoved = isSettled(keeper.remove(kept, 0));
  await asked;
  await model.endStep();
  expect([model.begun, isRemoved(), keeper.used]).toEqual([["measure", "load", "close"], false, 1]);
  await model.endStep();
  expect([isRemoved(), keeper.used]).toEqual([true, 0]);
});

// A model whose file had changed while it waited to be loaded stayed in the list of models for ever when it was removed meanwhile: that
// path returned before the list was cleaned.
test("a model that is removed while it turns out to have another size is forgotten", async () => {
  const keeper = new ModelKeeper(silentLog);
  const model = new SteppedModel();
  const kept = keeper.add("m", model, lazy, 1);
  const asked = Promise.resolve(keeper.ask(kept)).catch(codeOf);
  model.size = 2;
  const removal = keeper.remove(kept, 0);
  await asked;
  await model.endStep();
  await removal;
  expect([model.begun, keeper.used, keeper.stateOf(kept)]).toEqual([["measure"], 0, "out"]);
  expect(await Promise.resolve(keeper.ask(kept)).catch(codeOf)).toEqual([503, "shutting_down"]);
});

test("an engine that does not close is out of memory for the others all the same", async () => {
  const keeper = new ModelKeeper(silentLog);
  const model = new SteppedModel();
  model.engine = () => ({
    models: () => [info],
    generate: () => {
      throw new Error("No test generates.");
    },
    health: () => ({ state: "ready" }),
    close: () => Promise.reject(new Error("It hangs.")),
  });
  const kept = keeper.add("m", model, lazy, 1);
  const asked = Promise.resolve(keeper.ask(kept));
  await model.endStep();
  await model.endStep();
  (await asked).release();
  await keeper.remove(kept, 1000);
  expect(keeper.used).toBe(0);
});
