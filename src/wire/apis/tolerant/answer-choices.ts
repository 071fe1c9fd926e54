import type { FinishReason } from "../../core/events.ts";
import type { RepairLog } from "./repairs.ts";
import type { JsonObject } from "../../core/json.ts";

/** The state of a choice that `ChoicesReader` needs; readers of an endpoint add their own. */
export interface ChoiceState {
  readonly choice: number;
  started: boolean;
  /** There is a text that is not blank. */
  hasText: boolean;
  /** The finish reason, from when it was received. */
  finish: FinishReason | null;
  /** The finish reason came under the index of another choice, so one of its own replaces it. */
  isFinishBorrowed: boolean;
  stop: string | undefined;
  /** The `finish` event was emitted. */
  finished: boolean;
}

/** The state of a choice that has just begun. */
export function newChoice(choice: number): ChoiceState {
  return {
    choice,
    started: false,
    hasText: false,
    finish: null,
    isFinishBorrowed: false,
    stop: undefined,
    finished: false,
  };
}

/** The place of an element among the `choices` of its chunk. */
export interface PlaceInChunk {
  readonly position: number;
  /** The number of elements. */
  readonly siblings: number;
  /** See `hasSharedIndex`. */
  readonly isIndexShared: boolean;
}

/** The choices of one answer. Each is created by its first element in a chunk. */
export class AnswerChoices<Choice extends ChoiceState> {
  readonly #make: (choice: number) => Choice;
  readonly #repairs: RepairLog;
  readonly #limit: number;
  /** By their numbers in the answer, below `#limit`. */
  #choices = new Map<number, Choice>();
  /** In the order in which they began. */
  readonly #begun: Choice[] = [];
  /** All choices before this position in `#begun` have a finish reason. */
  #ended = 0;
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

  /** Fewer choices than requested have begun. */
  get isAnyMissing(): boolean {
    return Number.isFinite(this.#limit) && this.#choices.size < this.#limit;
  }

  /** The first choice that has begun and has no finish reason. */
  get unfinished(): Choice | undefined {
    for (; ; this.#ended++) {
      const choice = this.#begun[this.#ended];
      if (!choice || (choice.finish === null && !choice.finished)) return choice;
    }
  }

  /**
   * Returns the choice of an element of `choices`. An element without a usable index gets its position among its siblings, and so does each
   * whole choice if several have the same index. The first choices that appear are the requested ones: an index that is too high becomes the
   * lowest free one. Elements of further choices are dropped (`undefined`): an upstream could otherwise make the gateway store a choice
   * for each event.
   */
  of(raw: JsonObject, place: PlaceInChunk): Choice | undefined {
    const source = this.#sourceIndex(raw, place);
    return this.#bySource.get(source) ?? this.#open(source);
  }

  /** Opens a further choice for an element under the index of a choice that has ended, which the index then means. */
  openNext(raw: JsonObject, place: PlaceInChunk): Choice | undefined {
    return this.#open(this.#sourceIndex(raw, place));
  }

  #sourceIndex(raw: JsonObject, { position, siblings, isIndexShared }: PlaceInChunk): number {
    const index = usableIndex(raw);
    if (index !== null && !isIndexShared) return index;
    this.#repairs.note("choice-index");
    return siblings > 1 ? position : 0;
  }

  #open(source: number): Choice | undefined {
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
    const state = this.#make(choice);
    this.#choices.set(choice, state);
    this.#begun.push(state);
    this.#bySource.set(source, state);
    return state;
  }

  [Symbol.iterator](): IterableIterator<Choice> {
    return this.#choices.values();
  }
}

function usableIndex({ index }: JsonObject): number | null {
  return typeof index === "number" && Number.isInteger(index) && index >= 0 ? index : null;
}

/** Whether the elements of one chunk are whole choices of which several have the same index. */
export function hasSharedIndex(siblings: readonly JsonObject[]): boolean {
  if (siblings.length < 2 || siblings.some(({ delta }) => delta !== undefined)) return false;
  return new Set(siblings.map(usableIndex)).size < siblings.length;
}
