import type { GenerationFailure } from "../../wire/core/events.ts";
import type { QueueTier } from "../../wire/core/request.ts";

/** In the order in which they are served. */
const tierOrder: readonly QueueTier[] = ["priority", "default", "flex"];

/** The number of items of higher tiers that are taken before a waiting lower tier gets its turn. */
const maxPassed = 8;

/**
 * A queue of items with an owner and a tier. Higher tiers come first, but a tier of which an item waits is passed over at most
 * `maxPassed` times in a row, so every item is taken in the end. Within a tier, owners take turns: a new owner's item waits for one item of
 * each other owner, not for all. Without owners a tier is first in, first out.
 */
export class FairQueue<Item> {
  readonly #tiers = tierOrder.map(() => new OwnerLines<Item>());
  /** Of each tier: how many items of higher tiers were taken since its own turn, while it had items. */
  readonly #passed = tierOrder.map(() => 0);

  get length(): number {
    return this.#tiers.reduce((sum, { length }) => sum + length, 0);
  }

  /** The number of an owner's items. */
  lengthOf(owner = ""): number {
    return this.#tiers.reduce((sum, lines) => sum + lines.lengthOf(owner), 0);
  }

  push(item: Item, owner = "", tier: QueueTier = "default"): void {
    this.#tiers[tierOrder.indexOf(tier)]?.push(item, owner);
  }

  /** Iterates over all items in the order in which they would be taken. */
  *[Symbol.iterator](): Iterator<Item> {
    const left = this.#tiers.map(({ length }) => length);
    const items = this.#tiers.map((lines) => lines[Symbol.iterator]());
    const passed = [...this.#passed];
    for (let tier = nextTier(left, passed); tier !== -1; tier = nextTier(left, passed)) {
      left[tier] = (left[tier] ?? 0) - 1;
      countPassed(tier, left, passed);
      const step = items[tier]?.next();
      if (step && step.done !== true) yield step.value;
    }
  }

  /** Takes the next item; undefined if the queue is empty. */
  shift(): Item | undefined {
    const tier = nextTier(this.#lengths(), this.#passed);
    const item = this.#tiers[tier]?.shift();
    countPassed(tier, this.#lengths(), this.#passed);
    return item;
  }

  /** Takes an item, which uses the turn of its owner and of its tier. */
  take(item: Item): void {
    const tier = this.#tiers.findIndex((lines) => lines.take(item));
    if (tier !== -1) countPassed(tier, this.#lengths(), this.#passed);
  }

  /** Removes an item. Its owner and its tier keep their turn. */
  drop(item: Item): void {
    this.#tiers.some((lines) => lines.drop(item));
  }

  /** Removes all unwanted items, and returns whether there were any. */
  dropWhere(isUnwanted: (item: Item) => boolean): boolean {
    const unwanted = [...this].filter(isUnwanted);
    for (const item of unwanted) this.drop(item);
    return unwanted.length > 0;
  }

  #lengths(): number[] {
    return this.#tiers.map(({ length }) => length);
  }
}

/** The index of the tier whose turn it is: one that was passed over too often, else the highest with items; -1 if the queue is empty. */
function nextTier(lengths: readonly number[], passed: readonly number[]): number {
  const hasItems = (tier: number): boolean => (lengths[tier] ?? 0) > 0;
  const aged = passed.findIndex((count, tier) => count >= maxPassed && hasItems(tier));
  return aged === -1 ? lengths.findIndex((_, tier) => hasItems(tier)) : aged;
}

/** Counts that an item of `taken` was taken. `lengths`: of the tiers, without it. */
function countPassed(taken: number, lengths: readonly number[], passed: number[]): void {
  for (const [tier, length] of lengths.entries()) {
    if (tier === taken || length === 0) passed[tier] = 0;
    else if (tier > taken) passed[tier] = (passed[tier] ?? 0) + 1;
  }
}

/** The items of one tier: a line for each owner, which take turns. */
class OwnerLines<Item> {
  /** In the order of their turns. No line is empty. */
  readonly #lines = new Map<string, Item[]>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  lengthOf(owner: string): number {
    return this.#lines.get(owner)?.length ?? 0;
  }

  push(item: Item, owner: string): void {
    this.#length++;
    const line = this.#lines.get(owner);
    if (line) line.push(item);
    else this.#lines.set(owner, [item]);
  }

  *[Symbol.iterator](): Iterator<Item> {
    const lines = [...this.#lines.values()];
    for (let at = 0; ; at++) {
      let found = false;
      for (const line of lines) {
        const item = line[at];
        if (item === undefined) continue;
        found = true;
        yield item;
      }
      if (!found) return;
    }
  }

  shift(): Item | undefined {
    for (const [owner, line] of this.#lines) {
      const [item] = line;
      this.#remove(owner, line, 0, true);
      return item;
    }
    return undefined;
  }

  /** Takes an item, which uses its owner's turn. Returns whether it is here. */
  take(item: Item): boolean {
    return this.#find(item, true);
  }

  /** Removes an item. Its owner keeps its turn. Returns whether it is here. */
  drop(item: Item): boolean {
    return this.#find(item, false);
  }

  #find(item: Item, ownersTurn: boolean): boolean {
    for (const [owner, line] of this.#lines) {
      const at = line.indexOf(item);
      if (at === -1) continue;
      this.#remove(owner, line, at, ownersTurn);
      return true;
    }
    return false;
  }

  #remove(owner: string, line: Item[], at: number, ownersTurn: boolean): void {
    line.splice(at, 1);
    this.#length--;
    if (ownersTurn || line.length === 0) this.#lines.delete(owner);
    if (ownersTurn && line.length > 0) this.#lines.set(owner, line);
  }
}

/** The failure of a request whose owner has `waiting` others in the queue already. `what`: what waits. */
export function queueFull(waiting: number, what = "requests"): GenerationFailure {
  return {
    message: `The model is busy and ${waiting} ${what} are already waiting for it. Please retry after a moment.`,
    status: 429,
    kind: "overloaded",
    param: null,
    code: "rate_limit_exceeded",
    retryAfterSeconds: 1,
  };
}
