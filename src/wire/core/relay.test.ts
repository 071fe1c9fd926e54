import fc from "fast-check";
import { expect, test } from "vitest";
import { cancellable } from "./cancellable.ts";
import type { GenerationIterator } from "./engine.ts";
import type { GenerationEvent } from "./events.ts";
import { Relay } from "./relay.ts";

type Batch = readonly GenerationEvent[];

const text = (of: string): Batch => [{ type: "text-delta", choice: 0, text: of }];
const start: Batch = [{ type: "start", choice: 0 }];
const done: Batch = [{ type: "end", end: { kind: "done" } }];

/** A source whose batches are followed as far as `take` lets them; a promise in place of a batch is waited for. */
class Source implements GenerationIterator, AsyncIterable<Batch> {
  isLeft = false;
  readonly #batches: (Batch | Promise<Batch>)[];
  #leave = (): void => {};

  constructor(...batches: readonly (Batch | Promise<Batch>)[]) {
    this.#batches = [...batches];
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Batch, undefined>> {
    const leaving = new Promise<undefined>((resolve) => (this.#leave = () => resolve(undefined)));
    const value = this.isLeft ? undefined : await Promise.race([this.#batches.shift(), leaving]);
    return value ? { done: false, value } : { done: true, value: undefined };
  }

  async follow(take: (batch: Batch) => boolean): Promise<void> {
    for (let batch = this.#batches[0]; batch && !(batch instanceof Promise); batch = this.#batches[0]) {
      await Promise.resolve();
      this.#batches.shift();
      if (!take(batch)) return;
    }
  }

  async return(): Promise<IteratorResult<Batch, undefined>> {
    this.isLeft = true;
    this.#leave();
    return { done: true, value: undefined };
  }
}

const never = new Promise<never>(() => {});

/** What a relay passes on, pulled, or followed where it can be. */
async function passed(relay: Relay, follows: boolean): Promise<Batch[]> {
  const all: Batch[] = [];
  for (let step = await relay.next(); step.done !== true; step = await relay.next()) {
    all.push(step.value);
    if (follows) await relay.follow((batch) => all.push(batch) > 0);
  }
  return all;
}

test.each([true, false])("the source that was asked last continues its first batch; followed: %s", async (follows) => {
  const [first, second] = [new Source(start, text("lost")), new Source(text("a"), text("b"), done)];
  const relay = new Relay(async ({ ask }) => {
    await ask(() => first);
    return ask(() => second);
  });
  expect(await passed(relay, follows)).toEqual([text("a"), text("b"), done]);
  expect(first.isLeft).toBe(true);
});

test("for any batches, those that are followed are passed on as those that are pulled, whatever read() does with them", async () => {
  const kinds = fc.array(fc.constantFrom("same", "later", "none", "other"), { maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(kinds, async (all) => {
      const run = (follows: boolean): Promise<Batch[]> => {
        const source = new Source(start, ...all.map((kind) => text(kind)), done);
        const read = (batch: Batch): Batch | Promise<Batch> => {
          const [event] = batch;
          const kind = event?.type === "text-delta" ? event.text : "same";
          if (kind === "none") return [];
          return kind === "same" ? batch : Promise.resolve(kind === "later" ? batch : text("another"));
        };
        return passed(new Relay((relay) => relay.ask(() => source), { read }), follows);
      };
      expect(await run(true)).toEqual(await run(false));
    }),
  );
});

test("the source may be replaced until a visible event was passed on", async () => {
  const unseen: [isUnsent: boolean, isUnseen: boolean][] = [];
  const read = (batch: Batch, { isUnsent, isUnseen }: Relay): Batch => {
    unseen.push([isUnsent, isUnseen]);
    return batch;
  };
  const relay = new Relay(({ ask }) => ask(() => new Source([], start, text("a"), done)), { read });
  await passed(relay, false);
  expect(unseen).toEqual([
    [true, true],
    [false, true],
    [false, false],
  ]);
});

test.each<[string, (relay: Relay, source: Source) => Promise<Batch>]>([
  ["a batch is awaited", (relay, source) => relay.ask(() => source)],
  ["something else is", () => never],
])("a waiting next() ends when the client leaves while %s, and no other source is asked", async (_, open) => {
  const source = new Source(never);
  let ended = 0;
  let hasAsked = false;
  const relay = new Relay(
    async (each) => {
      await open(each, source);
      return each.ask(() => {
        hasAsked = true;
        return new Source(done);
      });
    },
    { onEnd: () => ended++ },
  );
  const { signal } = relay;
  const next = relay.next();
  await relay.return();
  expect(await next).toEqual({ done: true, value: undefined });
  expect(await relay.next()).toEqual({ done: true, value: undefined });
  expect([ended, hasAsked, signal.aborted]).toEqual([1, false, true]);
});

test("what open() or read() throws leaves the source and rejects", async () => {
  const source = new Source(text("a"), text("b"), never);
  const read = (): never => {
    throw new Error("defect");
  };
  let ended = 0;
  const relay = new Relay(({ ask }) => ask(() => source), { read, onEnd: () => ended++ });
  await relay.next();
  await expect(relay.next()).rejects.toThrow("defect");
  expect([source.isLeft, ended]).toEqual([true, 1]);
});

// A model that had to be loaded first was not told that its client had left, until its next token.
test("a source that waits is left at once", async () => {
  let isAborted = false;
  const source = cancellable(async function* (signal): AsyncGenerator<Batch> {
    signal.addEventListener("abort", () => (isAborted = true));
    yield await never;
  });
  const relay = new Relay(({ ask }) => ask(() => source));
  const next = relay.next();
  await Promise.resolve();
  await relay.return();
  expect((await next).done).toBe(true);
  expect(isAborted).toBe(true);
});
