import fc from "fast-check";
import { expect, test } from "vitest";
import { Embedder, type EmbedderOptions, type EmbeddingContext } from "./embedder.ts";

/** One token of a batch. */
interface Entry {
  readonly token: number;
  readonly position: number;
  readonly sequence: number;
}

/** Embeds a text as the sum of its tokens, and records the batches. `finish` ends the current decode. */
class SummingContext implements EmbeddingContext {
  readonly batchSize: number;
  readonly sequences: number;
  readonly batches: (readonly Entry[])[] = [];
  aborted = false;
  finish: (() => void) | undefined;
  #entries: Entry[] = [];
  #sums = new Map<number, number>();

  constructor(batchSize: number, sequences: number) {
    this.batchSize = batchSize;
    this.sequences = sequences;
  }

  get batch(): EmbeddingContext["batch"] {
    const entries = this.#entries;
    return {
      length: entries.length,
      clear: () => void (this.#entries = []),
      add: (token: number, position: number, sequence: number) => this.#entries.push({ token, position, sequence }) - 1,
    } as unknown as EmbeddingContext["batch"];
  }

  async decode(): Promise<boolean> {
    this.batches.push(this.#entries);
    if (this.finish) await new Promise<void>((resolve) => (this.finish = resolve));
    if (this.aborted) return !(this.aborted = false);
    for (const { token, sequence } of this.#entries) this.#sums.set(sequence, (this.#sums.get(sequence) ?? 0) + token);
    return true;
  }

  abort(): void {
    this.aborted = true;
    this.finish?.();
  }

  clear(): void {
    this.#sums.clear();
  }

  pooled(sequence: number): Float32Array {
    return Float32Array.of(this.#sums.get(sequence) ?? Number.NaN);
  }
}

function embedderOf(context: EmbeddingContext, over: Partial<EmbedderOptions> = {}): Embedder {
  return new Embedder({
    open: () => context,
    limits: { maxTokens: context.batchSize, maxGapMs: 250, maxBatchMs: 10_000 },
    queueLimit: 64,
    onWork: () => {},
    onChange: () => {},
    clock: () => 0,
    ...over,
  });
}

async function drain(embedder: Embedder, othersWait = false): Promise<void> {
  while (embedder.hasWork) await embedder.step(othersWait);
}

const text = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 40 });
const request = fc.record({ owner: fc.constantFrom("a", "b", undefined), texts: fc.array(text, { minLength: 1 }) });

test("for all parallel requests: each text has its own result, in order, and no batch is too large", async () => {
  const scene = [
    fc.array(request, { maxLength: 6 }),
    fc.integer({ min: 1, max: 16 }),
    fc.nat(3),
    fc.boolean(),
  ] as const;
  await fc.assert(
    fc.asyncProperty(...scene, async (requests, batchSize, more, othersWait) => {
      const context = new SummingContext(batchSize, 1 + more);
      const embedder = embedderOf(context);
      const answers = requests.map(({ texts, owner }, id) => embedder.add(id, texts, owner));
      await drain(embedder, othersWait);
      for (const [at, { texts }] of requests.entries())
        expect((await answers[at])?.map(([sum]) => sum)).toEqual(texts.map((one) => one.reduce((a, b) => a + b, 0)));
      const all = requests.flatMap(({ texts }) => texts);
      expect(embedder.counters.embeddedTokens).toBe(all.flat().length);
      for (const pass of context.batches) {
        expect(pass.length).toBeLessThanOrEqual(batchSize);
        expect(new Set(pass.map(({ sequence }) => sequence)).size).toBeLessThanOrEqual(1 + more);
      }
      expect([embedder.open, embedder.hasWork]).toEqual([0, false]);
    }),
  );
});

test("short texts share a batch, and a long one takes several", async () => {
  const context = new SummingContext(4, 8);
  const embedder = embedderOf(context);
  const answer = embedder.add(1, [[1], [2, 2], [3, 3, 3], [1, 2, 3, 4, 5, 6]], undefined);
  await drain(embedder);
  expect((await answer)?.map(([sum]) => sum)).toEqual([1, 4, 9, 21]);
  expect(context.batches.map((pass) => pass.map(({ sequence, position }) => `${sequence}:${position}`))).toEqual([
    ["0:0", "1:0", "1:1"],
    ["0:0", "0:1", "0:2"],
    ["0:0", "0:1", "0:2", "0:3"],
    ["0:4", "0:5"],
  ]);
});

test("owners take turns: a single text does not wait for another owner's thousand texts", async () => {
  const embedder = embedderOf(new SummingContext(2, 2));
  const many = embedder.add(
    1,
    Array.from({ length: 1000 }, () => [1]),
    "many",
  );
  const one = embedder.add(2, [[7]], "one");
  await embedder.step(false);
  expect(await one).toEqual([Float32Array.of(7)]);
  embedder.cancel(1);
  expect(await many).toBeNull();
  expect(embedder.hasWork).toBe(false);
});

test("a decode that no request needs is aborted, one that others need continues", async () => {
  const context = new SummingContext(8, 8);
  context.finish = () => {};
  const embedder = embedderOf(context);
  const [left, stays] = [embedder.add(1, [[1]], undefined), embedder.add(2, [[2]], undefined)];
  const pass = embedder.step(false);
  embedder.cancel(1);
  expect([await left, context.aborted]).toEqual([null, false]);
  context.finish();
  await pass;
  expect(await stays).toEqual([Float32Array.of(2)]);
  const alone = embedder.add(3, [[3], [4]], undefined);
  const ended = embedder.step(false);
  embedder.cancel(3);
  await ended;
  expect([await alone, embedder.open, embedder.hasWork]).toEqual([null, 0, false]);
});

test("a cancelled text that was decoded in part leaves no state", async () => {
  const embedder = embedderOf(new SummingContext(2, 2));
  const left = embedder.add(1, [[1, 1, 1, 1, 1]], undefined);
  await embedder.step(false);
  embedder.cancel(1);
  const next = embedder.add(2, [[5]], undefined);
  await drain(embedder);
  expect([await left, await next]).toEqual([null, [Float32Array.of(5)]]);
});

test("each owner may have one running request and a full queue of waiting ones", async () => {
  const embedder = embedderOf(new SummingContext(2, 2), { queueLimit: 1 });
  const taken = [embedder.add(1, [[1]], "a"), embedder.add(2, [[2]], "a"), embedder.add(3, [[3]], "b")];
  await expect(embedder.add(4, [[4]], "a")).rejects.toMatchObject({ failure: { status: 429, kind: "overloaded" } });
  await drain(embedder);
  expect(await Promise.all(taken)).toEqual([1, 2, 3].map((sum) => [Float32Array.of(sum)]));
});

test("a failure ends the requests of its batch, and no others", async () => {
  const context = new SummingContext(1, 1);
  const embedder = embedderOf(context);
  const [bad, good] = [embedder.add(1, [[Number.NaN], [1]], undefined), embedder.add(2, [[2]], undefined)];
  bad.catch(() => {});
  await drain(embedder);
  await expect(bad).rejects.toMatchObject({ failure: { status: 500 } });
  expect(await good).toEqual([Float32Array.of(2)]);
  const without = embedderOf(context, {
    open: () => {
      throw new Error("no memory");
    },
  });
  const refused = without.add(1, [[1]], undefined);
  refused.catch(() => {});
  await without.step(false);
  await expect(refused).rejects.toThrow("The model failed: no memory.");
});
