import type { FinishEvent, FinishReason, GenerationEvent } from "./events.ts";

/**
 * Combines a choice's events from several sources to one legal sequence: `start` comes first, calls are numbered across all sources, and
 * the finish reason agrees with the calls.
 */
export class ChoiceAssembler {
  readonly #choice: number;
  #started = false;
  #calls = 0;
  #hasText = false;
  /** By source: the source's index of a call → the index in the choice. */
  readonly #indices = new Map<string, number[]>();
  #events: GenerationEvent[] = [];

  constructor(choice: number) {
    this.#choice = choice;
  }

  /** Whether a call has begun. */
  get hasCalls(): boolean {
    return this.#calls > 0;
  }

  /** Whether the choice has a text that is not blank. */
  get hasText(): boolean {
    return this.#hasText;
  }

  /** Adds events of a source, without a `finish`. Each source numbers its calls independently, and may restart at 0. */
  add(events: readonly GenerationEvent[], source = "text"): void {
    for (const event of events) {
      if (event.type === "start") this.#started = true;
      else this.#start();
      if (!this.#hasText && event.type === "text-delta") this.#hasText = /\S/.test(event.text);
      this.#events.push(this.#renumbered(event, source));
    }
  }

  /**
   * Ends the choice. The reason "stop" becomes "tool-calls" if there are calls. `stop`: the stop string that ended it. `limit`: the limit
   * of reason "length".
   */
  finish(reason: FinishReason, stop?: string, limit?: FinishEvent["limit"]): void {
    this.#start();
    this.#events.push({
      type: "finish",
      choice: this.#choice,
      reason: reason === "stop" && this.hasCalls ? "tool-calls" : reason,
      ...(stop !== undefined && { stop }),
      ...(limit !== undefined && { limit }),
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
