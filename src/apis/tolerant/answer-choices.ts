import type { FinishReason } from "../../core/events.ts";
import type { RepairLog } from "./repairs.ts";
import type { JsonObject } from "../../core/json.ts";

/** The state of a choice that `ChoicesReader` needs; readers of an endpoint add their own. */
export interface ChoiceState {
  readonly choice: number;
  started: boolean;
  /** The finish reason, from when it was received. */
  finish: FinishReason | null;
  stop: string | undefined;
  /** The `finish` event was emitted. */
  finished: boolean;
}

/** The choices of one answer. Each is created by its first element in a chunk. */
export class AnswerChoices<Choice extends ChoiceState> {
  readonly #make: (choice: number) => Choice;
  readonly #repairs: RepairLog;
  readonly #limit: number;
  /** By their numbers in the answer, below `#limit`. */
  #choices = new Map<number, Choice>();
  /** By the source's numbers. */
  #bySource = new Map<number, Choice>();
  /** All lower numbers are in use. */
  #free = 0;

  /** `limit`: the number of choices that were requested. */
  constructor(make: (choice: number) => Choice, repairs: RepairLog, limit: number) {
    this.#make = make;
    this.#repairs = repairs;
    this.#limit = limit;
  }

  get size(): number {
    return this.#choices.size;
  }

  /** There is a choice, and all choices have a finish reason. */
  get finished(): boolean {
    if (this.#choices.size === 0) return false;
    for (const choice of this.#choices.values()) if (choice.finish === null && !choice.finished) return false;
    return true;
  }

  get(choice: number): Choice | undefined {
    return this.#choices.get(choice);
  }

  /**
   * Returns the choice of an element of `choices`. An element without a usable index gets its position among `siblings`. The first
   * choices that appear are the requested ones: an index that is too high becomes the lowest free one. Elements of further choices are
   * dropped (`undefined`): an upstream could otherwise make the gateway store a choice for each event.
   */
  of(raw: JsonObject, position: number, siblings: number): Choice | undefined {
    const index = raw["index"];
    let source = typeof index === "number" && Number.isInteger(index) && index >= 0 ? index : -1;
    if (source === -1) {
      this.#repairs.note("choice-index");
      source = siblings > 1 ? position : 0;
    }
    let state = this.#bySource.get(source);
    if (state) return state;
    if (this.#choices.size >= this.#limit) {
      this.#repairs.note("surplus-choice");
      return undefined;
    }
    let choice = source;
    if (source >= this.#limit || this.#choices.has(source)) {
      this.#repairs.note("choice-index");
      while (this.#choices.has(this.#free)) this.#free++;
      choice = this.#free;
    }
    state = this.#make(choice);
    this.#choices.set(choice, state);
    this.#bySource.set(source, state);
    return state;
  }

  [Symbol.iterator](): IterableIterator<Choice> {
    return this.#choices.values();
  }
}
