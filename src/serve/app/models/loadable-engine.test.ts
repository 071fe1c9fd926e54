import fc from "fast-check";
import { expect, test } from "vitest";
import { ModelOpenError } from "../../../engines/llama/model-open-error.ts";
import { cancellable } from "../../../wire/core/cancellable.ts";
import type { Engine, ModelInfo } from "../../../wire/core/engine.ts";
import type { GenerationEvent } from "../../../wire/core/events.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import { silentLog } from "../../server/log.ts";
import { LoadableEngine } from "./loadable-engine.ts";
import type { Loadable } from "./model-keeper.ts";
import { ModelKeeper } from "./model-keeper.ts";

const request: GenerationRequest = {
  id: "req",
  model: "m",
  prompt: { kind: "text", prompts: ["x"] },
  sampling: {},
  limits: {},
  wantsUsage: true,
  stream: true,
  extra: {},
};
const pieces = 4;

/** What is in memory, and what went wrong with it. */
class Memory {
  loaded = 0;
  mostLoaded = 0;
  cut = 0;
}

/** A model whose loading and whose every piece of text come when the scheduler wants. Every `failEvery`-th load fails. */
function fakeModel(name: string, memory: Memory, turn: () => Promise<void>, failEvery: number): Loadable {
  const info: ModelInfo = { id: name, created: 0, ownedBy: "test", endpoints: ["chat"] };
  let loads = 0;
  return {
    info,
    source: { model: name },
    measure: async () => 1,
    async load() {
      await turn();
      loads++;
      if (failEvery > 0 && loads % failEvery === 0) throw new ModelOpenError("load-failed", "It does not load.");
      memory.loaded++;
      memory.mostLoaded = Math.max(memory.mostLoaded, memory.loaded);
      let open = 0;
      const engine: Engine = {
        models: () => [info],
        generate: () =>
          cancellable(async function* (signal): AsyncGenerator<readonly GenerationEvent[]> {
            open++;
            try {
              for (let piece = 0; piece < pieces && !signal.aborted; piece++) {
                await turn();
                yield [{ type: "text-delta", choice: 0, text: name }];
              }
              yield [{ type: "end", end: { kind: "done" } }];
            } finally {
              open--;
            }
          }),
        health: () => ({ state: "ready" }),
        async close() {
          memory.cut += open;
          await turn();
          memory.loaded--;
        },
      };
      return engine;
    },
  };
}

const client = fc.record({
  model: fc.nat(2),
  /** Leaves after so many pieces; more than there are: stays to the end. */
  patience: fc.integer({ min: 0, max: 8 }),
});

test("for every interleaving: no answer is cut, the budget holds, everybody hears an end, and nothing stays busy", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.integer({ min: 1, max: 2 }),
      fc.integer({ min: 0, max: 3 }),
      fc.array(client, { minLength: 1, maxLength: 12 }),
      async (scheduler, budget, failEvery, clients) => {
        const memory = new Memory();
        const turn = (): Promise<void> => scheduler.schedule(Promise.resolve());
        const keeper = new ModelKeeper(silentLog);
        keeper.setBudget(budget);
        const engines = ["a", "b", "c"].map((name) => {
          const model = fakeModel(name, memory, turn, failEvery);
          return new LoadableEngine(keeper.add(name, model, { load: "lazy", keep: false }, 1), keeper);
        });
        const answers = clients.map(async ({ model, patience }) => {
          await turn();
          const engine = engines[model];
          const generation = engine?.generate(request)[Symbol.asyncIterator]();
          const said: string[] = [];
          for (let heard = 0; ; heard++) {
            if (heard >= patience) {
              await generation?.return?.();
              return;
            }
            const step = await generation?.next();
            if (step === undefined || step.done === true) return;
            for (const event of step.value) {
              if (event.type === "text-delta") said.push(event.text);
              if (event.type !== "end") continue;
              if (event.end.kind === "done") expect(said).toEqual(Array(pieces).fill(engine?.model.name));
              else expect(event.end).toMatchObject({ kind: "rejected", failure: { code: "model_load_failed" } });
            }
          }
        });
        await scheduler.waitFor(Promise.all(answers));
        await scheduler.waitIdle();
        expect(memory.cut).toBe(0);
        expect(memory.mostLoaded).toBeLessThanOrEqual(budget);
        for (const { model } of engines) {
          expect(keeper.busyOf(model)).toBe(0);
          expect(keeper.waitingFor(model)).toBe(0);
        }
        const closed = Promise.all(engines.map((engine) => engine.close(0)));
        await scheduler.waitFor(closed);
        await scheduler.waitIdle();
        expect(memory.loaded).toBe(0);
      },
    ),
    { numRuns: 300 },
  );
});
