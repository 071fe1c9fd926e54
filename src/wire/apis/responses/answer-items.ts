import type { GenerationEvent } from "../../core/events.ts";
import { nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import type { RepairLog } from "../tolerant/repairs.ts";

import { AnswerItem, type ItemKind, kindOfItem } from "./answer-item.ts";

/** The items of one answer of the Responses API, from an upstream, in their order: finds the item that an event belongs to. Only the first item that is open hands out its events. */
export class AnswerItems {
  readonly #repairs: RepairLog;
  readonly #newCallId: () => string;
  readonly #source: string | undefined;
  readonly #items: AnswerItem[] = [];
  readonly #byIndex = new Map<number, AnswerItem>();
  readonly #byId = new Map<string, AnswerItem>();
  /** The open items of each kind, the latest one last. Items that have ended are removed when they are found. */
  readonly #open = new Map<ItemKind, AnswerItem[]>();
  /** The index of the first item that is not closed. */
  #head = 0;
  /** The number of items from there on that are no list of functions. */
  #others = 0;
  /** The lists of functions that come at the end. */
  readonly #lists: AnswerItem[] = [];
  /** The number of calls that have begun. */
  calls = 0;
  /** The answer is one body, without deltas. */
  isWhole = false;
  /** The source says that it stores the response. */
  isStored = false;

  constructor(repairs: RepairLog, { newCallId, source }: Pick<AnswerReaderOptions, "newCallId" | "source">) {
    this.#repairs = repairs;
    this.#newCallId = newCallId;
    this.#source = source;
  }

  get count(): number {
    return this.#items.length;
  }

  /** An item was announced. */
  added(raw: JsonObject, index: unknown): void {
    const { type, id } = raw;
    this.#add(kindOfItem(type), nonEmpty(id), index, type === "mcp_list_tools").added(raw);
  }

  /** A whole item has come. */
  whole(raw: JsonObject, index: unknown): void {
    const kind = kindOfItem(raw["type"]);
    const id = nonEmpty(raw["id"]);
    const known = this.#find(kind, id, index);
    if (known?.closed === true) return;
    if (!known) this.#repairs.note("item-added");
    (known ?? this.#add(kind, id, index)).whole(raw);
  }

  /** Whether an event belongs to an item that was closed when another one began. */
  isClosed(kind: ItemKind, event: JsonObject): boolean {
    return this.#find(kind, nonEmpty(event["item_id"]), event["output_index"])?.closed === true;
  }

  /** Returns the item that an event belongs to; adds one if none was announced. */
  of(kind: ItemKind, event: JsonObject): AnswerItem {
    const id = nonEmpty(event["item_id"]);
    const index = event["output_index"];
    const known = this.#find(kind, id, index);
    if (known && !known.closed) return known;
    const latest = this.#latestOpen(kind);
    if (latest) {
      this.#repairs.note("item-index");
      return latest;
    }
    this.#repairs.note("item-added");
    return this.#add(kind, id, index);
  }

  /** Adds what only the whole response at the end contains. */
  reconcile(output: readonly JsonObject[]): void {
    for (const [index, raw] of output.entries()) {
      const kind = kindOfItem(raw["type"]);
      const id = nonEmpty(raw["id"]);
      const atIndex = this.#items[index];
      const known = this.#find(kind, id, index) ?? (atIndex?.kind === kind ? atIndex : undefined);
      if (known === undefined) {
        this.#repairs.note("item-added");
        this.#add(kind, id, index).whole(raw);
      } else if (!known.done && !known.closed) {
        this.#repairs.note("item-done");
        known.whole(raw);
      }
    }
  }

  /**
   * Hands out the events of the first open item, and of those after it if it can be closed. A list of functions that has not ended when
   * another item begins comes at the end, for its place: OpenAI sends the functions of all servers but the last with the whole response only (a
   * recording of 2026-06; pydantic-ai#5419).
   */
  advance(out: GenerationEvent[]): void {
    for (let item = this.#items[this.#head]; item; item = this.#items[this.#head]) {
      const isLast = this.#head === this.#items.length - 1;
      if (item.isList && !item.done && this.#others > 0) {
        item.postpone();
        item.handOut(out);
        this.#lists.push(item);
        this.#head++;
        continue;
      }
      if (item.done || (!isLast && item.looksComplete)) item.close();
      item.handOut(out);
      if (!item.closed) return;
      this.#head++;
      if (!item.isList) this.#others--;
    }
  }

  /** The answer has ended: closes every item with what it has. */
  close(out: GenerationEvent[]): void {
    for (const item of [...this.#items.slice(this.#head), ...this.#lists]) {
      item.close();
      item.handOut(out);
    }
    this.#head = this.#items.length;
  }

  #find(kind: ItemKind, id: string | undefined, index: unknown): AnswerItem | undefined {
    const byId = id === undefined ? undefined : this.#byId.get(id);
    if (byId?.kind === kind) return byId;
    const byIndex = typeof index === "number" ? this.#byIndex.get(index) : undefined;
    return byIndex?.kind === kind && (id === undefined || byIndex.id === undefined || id === byIndex.id)
      ? byIndex
      : undefined;
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

  #add(kind: ItemKind, id: string | undefined, index: unknown, isList = false): AnswerItem {
    const before = this.#items.at(-1);
    if (before && !before.done && !before.looksComplete) this.#repairs.note("item-order");
    const item = new AnswerItem(kind, id, {
      repairs: this.#repairs,
      newCallId: this.#newCallId,
      nextCall: () => this.calls++,
      isWhole: this.isWhole,
      isStored: this.isStored,
      source: this.#source,
      isList,
    });
    if (!isList) this.#others++;
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
