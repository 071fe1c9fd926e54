import type { FinishReason } from "../../generation/event.ts";
import type { RepairLog } from "./repairs.ts";
import type { JsonObject } from "../../generation/json.ts";

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
  #choices = new Map<number, Choice>();

  constructor(make: (choice: number) => Choice, repairs: RepairLog) {
    this.#make = make;
    this.#repairs = repairs;
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

  /** The choice that an element of `choices` speaks of. One without a usable index has it from its place among `siblings`. */
  of(raw: JsonObject, position: number, siblings: number): Choice {
    const index = raw["index"];
    let choice = typeof index === "number" && Number.isInteger(index) && index >= 0 ? index : -1;
    if (choice === -1) {
      this.#repairs.note("choice-index");
      choice = siblings > 1 ? position : 0;
    }
    let state = this.#choices.get(choice);
    if (!state) this.#choices.set(choice, (state = this.#make(choice)));
    return state;
  }

  [Symbol.iterator](): IterableIterator<Choice> {
    return this.#choices.values();
  }
}
