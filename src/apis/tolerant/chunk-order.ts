import type { GenerationEvent } from "../../core/events.ts";

/**
 * Records the chunk of each event of a capture. A reader holds back the finish of a choice, because text may follow it. After the whole
 * capture was read, the finish can be moved back to its chunk.
 */
export class ChunkOrder {
  /** The number of events at the end of each chunk. */
  readonly #ends: number[] = [];
  /** The chunks of finish reasons, in order. A source may repeat one. */
  #finishes: { readonly choice: number; readonly chunk: number }[] = [];
  /** The events that end a choice; `to` is exclusive. The last one is its finish. */
  readonly #closings = new Map<number, { readonly from: number; readonly to: number }>();

  /** The number of chunks that have ended. */
  get chunks(): number {
    return this.#ends.length;
  }

  /** Ends a chunk. `events`: the number of events until now. */
  endChunk(events: number): void {
    this.#ends.push(events);
  }

  /** The current chunk has a finish reason of this choice. */
  addFinish(choice: number): void {
    this.#finishes.push({ choice, chunk: this.#ends.length });
  }

  /** The current chunk has content of a choice after its finish reason: the reason is moved after it. */
  moveFinish(choice: number): void {
    this.#finishes = this.#finishes.filter((finish) => finish.choice !== choice);
    this.addFinish(choice);
  }

  /** The choice's `finish` event was emitted. */
  close(choice: number, from: number, to: number): void {
    this.#closings.set(choice, { from, to });
  }

  /** The events of the capture by chunk, with one more batch for those after the last chunk. */
  batches(events: readonly GenerationEvent[]): GenerationEvent[][] {
    const batches: GenerationEvent[][] = Array.from({ length: this.#ends.length + 1 }, () => []);
    const moved = new Set<GenerationEvent>();
    const placed = this.#finishes.flatMap(({ choice, chunk }) => {
      const closing = this.#closings.get(choice);
      if (!closing) return [];
      const block = events.slice(closing.from, closing.to);
      // A repeated reason has no further events.
      const shown = block.some((event) => moved.has(event)) ? block.slice(-1) : block;
      for (const event of block) moved.add(event);
      return [{ chunk, shown }];
    });
    let chunk = 0;
    for (const [position, event] of events.entries()) {
      while (position >= (this.#ends[chunk] ?? Number.POSITIVE_INFINITY)) chunk++;
      if (!moved.has(event)) batches[chunk]?.push(event);
    }
    for (const { chunk, shown } of placed) batches[chunk]?.push(...shown);
    return batches;
  }
}
