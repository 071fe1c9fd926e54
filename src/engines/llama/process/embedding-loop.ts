import type { Embedder } from "./embedder.ts";

/** Drives a model that only makes embeddings, as the scheduler does one that generates. */
export class EmbeddingLoop {
  readonly #embedder: Pick<Embedder, "hasWork" | "pass">;
  #wake: (() => void) | undefined;
  #turn = 0;

  constructor(embedder: Pick<Embedder, "hasWork" | "pass">) {
    this.#embedder = embedder;
  }

  /** The number of the pass that it is at; null: it waits for work. */
  get turn(): number | null {
    return this.#wake ? null : this.#turn;
  }

  /** There may be something to do. */
  stir(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Runs for ever. */
  async run(): Promise<never> {
    for (;;) {
      this.#turn++;
      if (this.#embedder.hasWork) await this.#embedder.pass(false);
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
