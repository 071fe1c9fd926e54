import fc from "fast-check";
import { expect, test } from "vitest";
import type { Engine, GenerationIterator } from "../core/engine.ts";
import type { GenerationEvent } from "../core/events.ts";
import type { GenerationRequest } from "../core/request.ts";
import { Departure } from "./exchange.ts";
import { runGeneration } from "./run-generation.ts";

type Batch = readonly GenerationEvent[];

const request = { limits: {} } as GenerationRequest;
const done: GenerationEvent = { type: "end", end: { kind: "done" } };
const text = (of: string): GenerationEvent => ({ type: "text-delta", choice: 0, text: of });

/** Its batches in order; with `follows`, through `follow` as far as `take` lets it. `null` in place of a batch waits until it is returned. */
function engineOf(batches: readonly (Batch | null)[], follows: boolean): Pick<Engine, "generate"> {
  let at = 0;
  let leave = (): void => {};
  const pull = (): Promise<IteratorResult<Batch, undefined>> => {
    const value = batches[at++];
    if (value) return Promise.resolve({ done: false, value });
    const over = { done: true as const, value: undefined };
    return value === null ? new Promise((resolve) => (leave = () => resolve(over))) : Promise.resolve(over);
  };
  const iterator: GenerationIterator = {
    next: pull,
    return() {
      at = batches.length;
      leave();
      return Promise.resolve({ done: true, value: undefined });
    },
    ...(follows && {
      async follow(take) {
        for (let batch = batches[at]; batch; batch = batches[at]) {
          await Promise.resolve();
          at++;
          if (!take(batch)) return;
        }
      },
    }),
  };
  return { generate: () => ({ [Symbol.asyncIterator]: () => iterator }) as AsyncIterable<Batch> };
}

/** What is written, and the end. Writes with an odd number wait; `stopsAfter`: the answer is complete after this number of writes. */
async function written(batches: readonly Batch[], follows: boolean, stopsAfter: number): Promise<unknown> {
  const all: Batch[] = [];
  let open = 0;
  const end = await runGeneration(
    { engine: engineOf(batches, follows), request },
    new Departure(),
    (events) => {
      expect(open, "a batch was written before the reader had taken the last one").toBe(0);
      if (all.push(events) % 2 === 0) return undefined;
      open++;
      return Promise.resolve().then(() => void open--);
    },
    () => all.length >= stopsAfter,
  );
  return { all, end };
}

test("for any batches, those that are followed are written as those that are pulled", async () => {
  const batch = fc.array(fc.string({ minLength: 1 }).map(text), { minLength: 1, maxLength: 3 });
  const answers = fc.tuple(fc.array(batch, { maxLength: 8 }), fc.boolean(), fc.integer({ min: 1, max: 12 }));
  await fc.assert(
    fc.asyncProperty(answers, async ([batches, ends, stopsAfter]) => {
      const whole = ends ? [...batches, [done]] : batches;
      expect(await written(whole, true, stopsAfter)).toEqual(await written(whole, false, stopsAfter));
    }),
  );
});

test.each([true, false])("a client that leaves gets nothing more; followed: %s", async (follows) => {
  const departure = new Departure();
  const all: Batch[] = [];
  const running = runGeneration(
    { engine: engineOf([[text("a")], [text("b")], null], follows), request },
    departure,
    (events) => {
      if (all.push(events) === 2) setImmediate(() => departure.happen());
      return undefined;
    },
  );
  expect(await running).toEqual({ kind: "client-gone" });
  expect(all).toHaveLength(2);
});

test.each([true, false])(
  "a writer that throws ends the generation as an error of this server; followed: %s",
  async (follows) => {
    const all: Batch[] = [];
    const end = await runGeneration(
      { engine: engineOf([[text("a")], [text("b")], [done]], follows), request },
      new Departure(),
      (events) => {
        if (all.push(events) === 2) throw new Error("defect");
        return undefined;
      },
    );
    expect(end.kind).toBe("engine-error");
    expect(all.at(-1)).toEqual([{ type: "end", end }]);
  },
);
