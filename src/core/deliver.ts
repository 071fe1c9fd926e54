import type { GenerationEvent } from "./events.ts";

type Batch = readonly GenerationEvent[];

/** Takes a batch of a generation. Returns a promise if the next batch must wait for it. */
export type TakeBatch = (batch: Batch) => Promise<void> | undefined;

/** An iteration over the batches of a generation that can also call its consumer, which saves several promises for each batch. */
export interface DeliveringIterator extends AsyncIterator<Batch> {
  /**
   * Replaces `next` after that has returned the first batch: passes each further batch to `take` as soon as it is known and the one before
   * was taken. Resolves after the last batch, or when the iteration is returned. Rejects with what `take` throws or rejects with.
   */
  deliver?(take: TakeBatch): Promise<void>;
}

/**
 * Passes the batches that follow the first one to `take`, from any iteration: see `DeliveringIterator`. An iteration whose `end` event was
 * taken is iterated to its end, or returned if it has more batches.
 */
export async function deliver(iterator: DeliveringIterator, take: TakeBatch): Promise<void> {
  if (iterator.deliver) return iterator.deliver(take);
  for (;;) {
    const step = await iterator.next();
    if (step.done === true) return;
    const wait = take(step.value);
    if (wait) await wait;
    if (step.value.at(-1)?.type === "end") return finish(iterator);
  }
}

/** Lets an iteration run the code after its last batch. */
export async function finish(iterator: AsyncIterator<Batch>): Promise<void> {
  const after = await iterator.next();
  if (after.done !== true) iterator.return?.().catch(() => {});
}
