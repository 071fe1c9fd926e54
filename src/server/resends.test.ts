import fc from "fast-check";
import { expect, test } from "vitest";
import type { GenerationEvent } from "../core/events.ts";
import type { GenerationRequest } from "../core/request.ts";
import { Resends } from "./resends.ts";

type Batch = readonly GenerationEvent[];

/** A source that gives a batch when `push` is called. */
class PushedSource {
  readonly #batches: Batch[] = [];
  #isOver = false;
  #waiting: ((result: IteratorResult<Batch>) => void) | undefined;
  pulled = 0;
  cancelled = false;
  generations = 0;

  push(batch: Batch): void {
    this.#batches.push(batch);
    this.#give();
  }

  generate(): AsyncIterable<Batch> {
    this.generations++;
    return {
      [Symbol.asyncIterator]: () => ({
        next: () =>
          new Promise((resolve) => {
            if (this.#isOver) return resolve({ done: true, value: undefined });
            this.#waiting = resolve;
            this.#give();
          }),
        return: () => {
          this.cancelled = true;
          this.#waiting?.({ done: true, value: undefined });
          return Promise.resolve({ done: true, value: undefined });
        },
      }),
    };
  }

  #give(): void {
    const batch = this.#waiting && this.#batches.shift();
    if (!batch) return;
    this.#isOver ||= batch === end;
    this.pulled++;
    const resolve = this.#waiting;
    this.#waiting = undefined;
    resolve?.({ done: false, value: batch });
  }
}

const text = (content: string): Batch => [{ type: "text-delta", choice: 0, text: content }];
const end: Batch = [{ type: "end", end: { kind: "done" } }];
function iterate(resends: Resends, source: Pick<PushedSource, "generate">): AsyncIterator<Batch> {
  const answer = resends.share(() => source, options()).generate(request);
  return answer[Symbol.asyncIterator]();
}

const request: GenerationRequest = {
  id: "req",
  model: "m",
  prompt: { kind: "chat", messages: [], template: {} },
  sampling: { temperature: 0 },
  limits: {},
  wantsUsage: false,
  stream: true,
  extra: {},
};
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const options = (more: object = {}) => ({
  key: "k",
  requestId: "first",
  isRetry: false,
  waitMs: 60_000,
  onFallback: () => {},
  onAttached: () => {},
  ...more,
});

test("for random reads and departures, every reader that stays gets the whole answer, from a single generation", async () => {
  const step = fc.oneof(
    fc.constant("attach" as const),
    fc.record({ read: fc.nat(3) }),
    fc.record({ leave: fc.nat(3) }),
    fc.constant("push" as const),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 5000 }), async (steps, limit) => {
      const source = new PushedSource();
      const resends = new Resends(limit);
      const shared = (): AsyncIterator<Batch> => iterate(resends, source);
      const readers: { iterator: AsyncIterator<Batch>; got: string[]; reading: Promise<void> }[] = [];
      const read = (reader: (typeof readers)[number]): Promise<void> =>
        (reader.reading = reader.reading
          .then(() => reader.iterator.next())
          .then(({ done, value }) => {
            if (done === true) return;
            for (const event of value as Batch) if (event.type === "text-delta") reader.got.push(event.text);
          }));
      const add = (): void => void readers.push({ iterator: shared(), got: [], reading: Promise.resolve() });
      add();
      const sent: string[] = [];
      for (const one of steps) {
        if (one === "push") {
          sent.push(`text ${sent.length} ${"x".repeat(50)}`);
          source.push(text(sent.at(-1) ?? ""));
        } else if (one === "attach") {
          // Behind a full buffer, a request starts a generation of its own.
          if (resends.size === 1) add();
        } else if ("read" in one) {
          const reader = readers[one.read];
          if (reader) void read(reader);
        } else if (readers.length > 1) await readers.splice(one.leave % readers.length, 1)[0]?.iterator.return?.();
        await turn();
      }
      source.push(end);
      const rest = async (reader: (typeof readers)[number]): Promise<void> => {
        for (let at = 0; at < 100; at++) await read(reader);
      };
      await Promise.all(readers.map(rest));
      for (const { got } of readers) expect(got).toEqual(sent);
      expect(source.generations).toBe(1);
      expect(resends.size).toBe(0);
    }),
    { numRuns: 60 },
  );
});

test("the fastest reader is at most the buffer's limit ahead of the slowest", async () => {
  const source = new PushedSource();
  const resends = new Resends(2000);
  const fast = iterate(resends, source);
  const slow = iterate(resends, source);
  for (let at = 0; at < 100; at++) source.push(text("x".repeat(100)));
  const reading = (async () => {
    for (let at = 0; at < 50; at++) await fast.next();
  })();
  for (let at = 0; at < 200; at++) await turn();
  // 400 bytes each: the batch that fills the buffer is the last one.
  expect(source.pulled).toBe(6);
  for (let at = 0; at < 50; at++) await slow.next();
  await reading;
  await fast.return?.();
  await slow.return?.();
  expect(source.cancelled).toBe(true);
});

test("what the source throws, each reader gets", async () => {
  const broken = {
    generate: () => ({
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error("broken")) }),
    }),
  };
  const resends = new Resends();
  const read = (): Promise<unknown> => iterate(resends, broken).next();
  const [one, other] = await Promise.allSettled([read(), read()]);
  expect([one, other]).toMatchObject([{ reason: { message: "broken" } }, { reason: { message: "broken" } }]);
  expect(resends.size).toBe(0);
});
