import type { FinishReason, GenerationEvent } from "./events.ts";

/**
 * Makes one legal sequence of a choice's events, whatever finds them: `start` stands before the first, the calls of all sources are
 * numbered through, and the finish reason agrees with the calls. Every engine's events of a choice go through one.
 */
export class ChoiceAssembler {
  readonly #choice: number;
  #started = false;
  #calls = 0;
  /** By source: its own index of a call → the index in the choice. */
  readonly #indices = new Map<string, number[]>();
  #events: GenerationEvent[] = [];

  constructor(choice: number) {
    this.#choice = choice;
  }

  /** Whether a call has begun. */
  get hasCalls(): boolean {
    return this.#calls > 0;
  }

  /** Events that a source found, without a `finish`. Each source numbers its calls for itself; it may begin anew with 0. */
  add(events: readonly GenerationEvent[], source = "text"): void {
    for (const event of events) {
      if (event.type === "start") this.#started = true;
      else this.#start();
      this.#events.push(this.#renumbered(event, source));
    }
  }

  /** The choice is complete. A reason "stop" becomes "tool-calls" where there are calls. `stop`: what text of the request ended it. */
  finish(reason: FinishReason, stop?: string): void {
    this.#start();
    this.#events.push({
      type: "finish",
      choice: this.#choice,
      reason: reason === "stop" && this.hasCalls ? "tool-calls" : reason,
      ...(stop !== undefined && { stop }),
    });
  }

  /** The events since the last call. */
  take(): GenerationEvent[] {
    const events = this.#events;
    if (events.length > 0) this.#events = [];
    return events;
  }

  #start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#events.push({ type: "start", choice: this.#choice });
  }

  #renumbered(event: GenerationEvent, source: string): GenerationEvent {
    if (event.type !== "tool-call-start" && event.type !== "tool-call-delta" && event.type !== "tool-call-end")
      return event;
    let indices = this.#indices.get(source);
    if (!indices) this.#indices.set(source, (indices = []));
    if (event.type === "tool-call-start") indices[event.index] = this.#calls++;
    const index = indices[event.index] ?? event.index;
    return index === event.index ? event : { ...event, index };
  }
}
