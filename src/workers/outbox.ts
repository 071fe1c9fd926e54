import type { GenerationEvent } from "../core/events.ts";
import { engineTopics } from "./engine-messages.ts";
import type { Peer } from "./peer.ts";

/** Batches on their way to a worker: what one step of a model brings for all its sequences is one message. */
export class Outbox {
  readonly #peer: Peer;
  /** JSON texts of entries. */
  #waiting: string[] = [];

  constructor(peer: Peer) {
    this.#peer = peer;
  }

  /** null: the generation is over. Throws where a batch is no JSON. */
  add(id: number, batch: readonly GenerationEvent[] | null): void {
    const entry = `[${id},${JSON.stringify(batch)}]`;
    if (this.#waiting.length === 0) process.nextTick(() => this.#send());
    this.#waiting.push(entry);
  }

  #send(): void {
    const entries = this.#waiting;
    this.#waiting = [];
    this.#peer.tell(engineTopics.events, `[${entries.join(",")}]`);
  }
}
