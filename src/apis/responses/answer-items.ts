import type { GenerationEvent } from "../../core/events.ts";
import type { JsonObject } from "../../core/json.ts";
import { nonEmpty } from "../../core/json.ts";
import type { RepairLog } from "../tolerant/repairs.ts";
import { AnswerItem, kindOf } from "./answer-item.ts";
import type { ItemKind } from "./answer-item.ts";

/**
 * The items of one answer in their order. Only the first that is not complete tells what it has; the others wait for it, since the
 * waist's parts follow each other.
 */
export class AnswerItems {
  readonly #repairs: RepairLog;
  readonly #newCallId: () => string;
  readonly #items: AnswerItem[] = [];
  readonly #byIndex = new Map<number, AnswerItem>();
  readonly #byId = new Map<string, AnswerItem>();
  /** The items of each kind that have not ended, the latest one last. Items that have ended are removed when they are found. */
  readonly #open = new Map<ItemKind, AnswerItem[]>();
  /** The first item that is not closed, as a position in `#items`. */
  #head = 0;
  #calls = 0;
  /** The answer is one body: nothing comes in pieces. */
  isWhole = false;

  constructor(repairs: RepairLog, newCallId: () => string) {
    this.#repairs = repairs;
    this.#newCallId = newCallId;
  }

  /** How many calls have begun. */
  get calls(): number {
    return this.#calls;
  }

  get count(): number {
    return this.#items.length;
  }

  /** An item is announced. */
  added(raw: JsonObject, index: unknown): void {
    const item = this.#add(kindOf(raw["type"]), nonEmpty(raw["id"]), index);
    item.added(raw);
  }

  /** An item comes whole. */
  whole(raw: JsonObject, index: unknown): void {
    const kind = kindOf(raw["type"]);
    const id = nonEmpty(raw["id"]);
    const known = this.#known(kind, id, index);
    if (known?.closed === true) return;
    if (!known) this.#repairs.note("item-added");
    (known ?? this.#add(kind, id, index)).whole(raw);
  }

  /** The item that an event of this kind belongs to; opened where no event has announced it. */
  of(kind: ItemKind, event: JsonObject): AnswerItem {
    const id = nonEmpty(event["item_id"]);
    const index = event["output_index"];
    const known = this.#known(kind, id, index);
    if (known && !known.closed) return known;
    const latest = this.#latestOpen(kind);
    if (latest) {
      this.#repairs.note("item-index");
      return latest;
    }
    this.#repairs.note("item-added");
    return this.#add(kind, id, index);
  }

  /** The items of the whole response, at its end: what never came otherwise comes now. */
  reconcile(output: readonly JsonObject[]): void {
    for (const [index, raw] of output.entries()) {
      const kind = kindOf(raw["type"]);
      const known = this.#known(kind, nonEmpty(raw["id"]), index) ?? this.#sameKindAt(kind, index);
      if (known === undefined) {
        this.#repairs.note("item-added");
        this.#add(kind, nonEmpty(raw["id"]), index).whole(raw);
      } else if (!known.done && !known.closed) {
        this.#repairs.note("item-done");
        known.whole(raw);
      }
    }
  }

  /** Tells what can be told. */
  advance(out: GenerationEvent[]): void {
    for (let item = this.#items[this.#head]; item; item = this.#items[this.#head]) {
      const isLast = this.#head === this.#items.length - 1;
      if (item.done || (!isLast && item.looksComplete)) item.close();
      for (const event of item.take()) out.push(event);
      if (!item.closed) return;
      this.#head++;
    }
  }

  /** The answer is over: every item ends with what it has. */
  close(out: GenerationEvent[]): void {
    for (const item of this.#items.slice(this.#head)) {
      item.close();
      for (const event of item.take()) out.push(event);
    }
    this.#head = this.#items.length;
  }

  #known(kind: ItemKind, id: string | undefined, index: unknown): AnswerItem | undefined {
    const byId = id === undefined ? undefined : this.#byId.get(id);
    if (byId?.kind === kind) return byId;
    const byIndex = typeof index === "number" ? this.#byIndex.get(index) : undefined;
    return byIndex?.kind === kind && (id === undefined || byIndex.id === undefined || id === byIndex.id)
      ? byIndex
      : undefined;
  }

  #sameKindAt(kind: ItemKind, index: number): AnswerItem | undefined {
    const item = this.#items[index];
    return item?.kind === kind ? item : undefined;
  }

  #latestOpen(kind: ItemKind): AnswerItem | undefined {
    const open = this.#open.get(kind);
    let latest = open?.at(-1);
    while (latest && (latest.closed || latest.done)) {
      open?.pop();
      latest = open?.at(-1);
    }
    return latest;
  }

  #add(kind: ItemKind, id: string | undefined, index: unknown): AnswerItem {
    const before = this.#items.at(-1);
    if (before && !before.done && !before.looksComplete) this.#repairs.note("item-order");
    const item = new AnswerItem(kind, id, {
      repairs: this.#repairs,
      newCallId: this.#newCallId,
      nextCall: () => this.#calls++,
      isWhole: this.isWhole,
    });
    if (index !== this.#items.length) this.#repairs.note("item-index");
    this.#items.push(item);
    const open = this.#open.get(kind);
    if (open) open.push(item);
    else this.#open.set(kind, [item]);
    if (typeof index === "number") this.#byIndex.set(index, item);
    if (id !== undefined) this.#byId.set(id, item);
    return item;
  }
}
