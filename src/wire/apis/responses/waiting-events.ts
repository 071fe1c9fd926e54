import type { GenerationEvent } from "../../core/events.ts";

/** Events that wait while a hosted call runs, in order. The events of a further call are together, at the place of its start. */
export class WaitingEvents {
  #entries: GenerationEvent[][] = [];
  /** The place of the next entry. */
  #next = 0;
  readonly #ofCall = new Map<string, GenerationEvent[]>();

  push(event: GenerationEvent): void {
    const isOfCall =
      event.type === "hosted-call-delta" || event.type === "hosted-call-end" || event.type === "hosted-result";
    const call = isOfCall ? this.#ofCall.get(event.id) : undefined;
    if (call) return void call.push(event);
    const entry = [event];
    this.#entries.push(entry);
    if (event.type === "hosted-call-start") this.#ofCall.set(event.id, entry);
  }

  /** Removes the next event, or all events of the next call. Returns undefined if none waits. */
  shift(): readonly GenerationEvent[] | undefined {
    const entry = this.#entries[this.#next++];
    if (!entry) {
      this.#entries = [];
      this.#next = 0;
      return undefined;
    }
    const [first] = entry;
    if (first?.type === "hosted-call-start" && this.#ofCall.get(first.id) === entry) this.#ofCall.delete(first.id);
    return entry;
  }
}
