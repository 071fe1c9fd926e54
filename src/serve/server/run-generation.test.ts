import fc from "fast-check";
import { expect, test } from "vitest";
import type { GenerationIterator } from "../../wire/core/engine.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { Departure } from "./exchange.ts";
import { runGeneration } from "./run-generation.ts";

type Batch = readonly GenerationEvent[];

const done: GenerationEvent = { type: "end", end: { kind: "done" } };
const text = (of: string): GenerationEvent => ({ type: "text-delta", choice: 0, text: of });

/** Its batches in order; with `follows`, through `follow` as far as `take` lets it. `null` in place of a batch waits until it is returned. */
function sourceOf(batches: readonly (Batch | null)[], follows: boolean): () => AsyncIterable<Batch> {
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
  return () => ({ [Symbol.asyncIterator]: () => iterator }) as AsyncIterable<Batch>;
}

/** What is written, and the end. Writes with an odd number wait; `stopsAfter`: the answer is complete after this number of writes. */
async function written(batches: readonly Batch[], follows: boolean, stopsAfter: number): Promise<unknown> {
  const all: Batch[] = [];
  let open = 0;
  const end = await runGeneration(
    { start: sourceOf(batches, follows) },
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
  const running = runGeneration({ start: sourceOf([[text("a")], [text("b")], null], follows) }, departure, (events) => {
    if (all.push(events) === 2) setImmediate(() => departure.happen());
    return undefined;
  });
  expect(await running).toEqual({ kind: "client-gone" });
  expect(all).toHaveLength(2);
});

test.each([true, false])(
  "a writer that throws ends the generation as an error of this server; followed: %s",
  async (follows) => {
    const all: Batch[] = [];
    const end = await runGeneration(
      { start: sourceOf([[text("a")], [text("b")], [done]], follows) },
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

// A client that left while its reader took the last batch, or while the engine ended, was written an end all the same, and the observers
// counted an answer that nobody got. The clients of the tests left only while a batch was awaited.
test.each(["while a batch is taken", "while the engine is stopped"])(
  "nothing is written after a client has left %s",
  async (when) => {
    const departure = new Departure();
    const all: Batch[] = [];
    const seen: Batch[] = [];
    const iterator: AsyncIterator<Batch> = {
      next: () => Promise.resolve({ done: false, value: [text("a")] }),
      return: () => {
        if (when === "while the engine is stopped") departure.happen();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
    const end = await runGeneration(
      { start: () => ({ [Symbol.asyncIterator]: () => iterator }), observers: [(events) => void seen.push(events)] },
      departure,
      (events) => {
        all.push(events);
        return Promise.resolve().then(() => {
          if (when === "while a batch is taken") departure.happen();
        });
      },
      () => true,
    );
    expect([end, all, seen]).toEqual([{ kind: "client-gone" }, [[text("a")]], [[text("a")]]]);
  },
);

// An answer that is ended before its engine reports its usage had none, unless each of its batches had brought it.
test("the usage of an answer that is complete before its engine has ended is asked for, and is not waited for where it fails", async () => {
  const usage = { promptTokens: 3, completionTokens: 2 };
  for (const usageSoFar of [() => Promise.resolve(usage), () => Promise.reject(new Error("It restarts.")), undefined]) {
    const all: GenerationEvent[] = [];
    const run = { start: sourceOf([[text("a")], null], false), ...(usageSoFar && { usageSoFar }) };
    await runGeneration(
      run,
      new Departure(),
      (events) => void all.push(...events),
      () => true,
    );
    const known = usageSoFar && (await usageSoFar().catch(() => undefined));
    expect(all.slice(1)).toEqual([
      { type: "finish", choice: 0, reason: "stop" },
      ...(known ? [{ type: "usage", usage }] : []),
      done,
    ]);
  }
});
