import type { FinishReason } from "../../core/events.ts";
import type { RepairLog } from "./repairs.ts";
import type { JsonObject } from "../../core/json.ts";

/** What a reader of an endpoint keeps of a choice, and what `ChoicesReader` does. */
export interface ChoiceState {
  readonly choice: number;
  started: boolean;
  /** The reason that came, while it waits to be told. */
  finish: FinishReason | null;
  stop: string | undefined;
  told: boolean;
}

/** The choices of one answer, each made when the source first speaks of it. */
export class AnswerChoices<Choice extends ChoiceState> {
  readonly #make: (choice: number) => Choice;
  readonly #repairs: RepairLog;
  readonly #limit: number;
  /** By their numbers in the answer, which are below `#limit`. */
  #choices = new Map<number, Choice>();
  /** By the numbers that the source gives them. */
  #bySource = new Map<number, Choice>();
  /** No lower number is free. */
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

  /** There is a choice, and each has its finish reason. */
  get finished(): boolean {
    if (this.#choices.size === 0) return false;
    for (const choice of this.#choices.values()) if (choice.finish === null && !choice.told) return false;
    return true;
  }

  get(choice: number): Choice | undefined {
    return this.#choices.get(choice);
  }

  /**
   * Returns the choice that an element of `choices` belongs to. An element without a usable index gets it from its place among
   * `siblings`. The first choices that appear are the requested ones: an index that is too high becomes the lowest free one, and what
   * belongs to further choices is dropped (`undefined`). An upstream could otherwise make the gateway keep a choice for each event.
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
