import type { GenerationEvent } from "../../core/events.ts";

/**
 * Remembers in which chunk of a capture each event came. A reader tells the finish of a choice late, because text may follow it; who
 * has read a whole capture knows where it stood, and can put it back there.
 */
export class ChunkOrder {
  /** How many events there were at the end of each chunk. */
  readonly #ends: number[] = [];
  /** Where finish reasons stood, in the order in which they came. A source may say one twice. */
  #finishes: { readonly choice: number; readonly chunk: number }[] = [];
  /** The events that end a choice, from the first up to and without `to`; the last of them is its finish. */
  readonly #closings = new Map<number, { readonly from: number; readonly to: number }>();

  /** A chunk has been read. `events`: how many there are by now. */
  endChunk(events: number): void {
    this.#ends.push(events);
  }

  /** The chunk that is being read has a finish reason of this choice. */
  addFinish(choice: number): void {
    this.#finishes.push({ choice, chunk: this.#ends.length });
  }

  /** The chunk that is being read has content of a choice whose finish reason came before: the reason follows it. */
  moveFinish(choice: number): void {
    this.#finishes = this.#finishes.filter((finish) => finish.choice !== choice);
    this.addFinish(choice);
  }

  /** A choice was told to be over. */
  close(choice: number, from: number, to: number): void {
    this.#closings.set(choice, { from, to });
  }

  /** All events of the capture, chunk by chunk; what came behind the last chunk is one more. */
  batches(events: readonly GenerationEvent[]): GenerationEvent[][] {
    const batches: GenerationEvent[][] = Array.from({ length: this.#ends.length + 1 }, () => []);
    const moved = new Set<GenerationEvent>();
    const placed = this.#finishes.flatMap(({ choice, chunk }) => {
      const closing = this.#closings.get(choice);
      if (!closing) return [];
      const block = events.slice(closing.from, closing.to);
      // The second time it is only said again.
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
