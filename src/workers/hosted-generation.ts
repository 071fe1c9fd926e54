import type { GenerationEvent } from "../core/events.ts";
import { mostAhead } from "./engine-messages.ts";
import { failureOf, portableBatch } from "./portable-failure.ts";

type Batch = readonly GenerationEvent[];

/** A generation that is pulled here for a reader in another process, and only a few batches ahead of it. */
export class HostedGeneration {
  readonly #start: () => AsyncIterable<Batch>;
  readonly #send: (batch: Batch | null) => void;
  #iterator: AsyncIterator<Batch> | undefined;
  #credit = mostAhead;
  #left = false;
  #wake: (() => void) | undefined;

  /** `send`: null tells that the generation is over without a further event. It may throw for a batch that cannot be sent. */
  constructor(start: () => AsyncIterable<Batch>, send: (batch: Batch | null) => void) {
    this.#start = start;
    this.#send = send;
  }

  /** Pulls to the end, or until the reader has left; never rejects. */
  async run(): Promise<void> {
    try {
      const iterator = this.#start()[Symbol.asyncIterator]();
      this.#iterator = iterator;
      while (!this.#left) {
        if (this.#credit === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
        if (this.#left) return;
        const step = await iterator.next();
        if (this.#left) return;
        if (step.done === true) return this.#send(null);
        // Its reader would not see it, so it would never be taken.
        if (step.value.length === 0) continue;
        this.#credit--;
        this.#send(portableBatch(step.value));
        if (step.value.at(-1)?.type !== "end") continue;
        // Lets the engine run its code after the last batch, where it may clean up.
        const after = await iterator.next();
        if (after.done !== true) this.leave();
        return;
      }
    } catch (error) {
      if (this.#left) return;
      this.leave();
      this.#send([{ type: "end", end: { kind: "engine-error", failure: failureOf(error) } }]);
    }
  }

  /** The reader has taken so many batches more. */
  taken(batches: number): void {
    this.#credit += batches;
    this.#wake?.();
    this.#wake = undefined;
  }

  /** The reader is gone: the engine's work is cancelled. */
  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#wake?.();
    this.#iterator?.return?.().catch(() => {});
  }
}
