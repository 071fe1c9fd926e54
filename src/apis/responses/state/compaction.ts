import { Pace } from "../../../core/steps.ts";
import type { Steps } from "../../../core/steps.ts";
import { BodyCounter } from "../../body-counter.ts";
import { openSeal, seal } from "../seal.ts";
import type { Item } from "./kept-response.ts";

const mark = "truewire.compaction.1.";

/**
 * A conversation as the `encrypted_content` of a compaction: all of it, so nothing is lost and no model needs to be asked. It is encoded,
 * not encrypted: it holds what its client had sent or been shown.
 */
export function sealHistory(items: readonly Item[]): string {
  return seal(mark, items);
}

/** The conversations of the compactions of requests that are being read: some are asked for more than once. */
const opened = new WeakMap<object, Item[]>();

/** An item of an input, and where the request has it. */
export interface PlacedItem {
  readonly item: unknown;
  readonly path: string;
  /** It was taken before, and is not to be judged again. */
  readonly again?: true;
}

/**
 * The items with those of our compactions in their places. A compaction comes behind the messages of the user that it holds, too: these
 * are then left out, unless the client has changed them.
 */
export function* withoutCompactions(items: readonly PlacedItem[]): Steps<PlacedItem[]> {
  const found: PlacedItem[] = [];
  const counter = new BodyCounter();
  const pace = new Pace();
  for (const placed of items) {
    if (pace.isOver()) yield;
    const history = historyIn(placed.item, counter);
    if (!history) {
      found.push(placed);
      continue;
    }
    const held = history.filter(isOfUser);
    const before = found.slice(Math.max(0, found.length - held.length)).map(({ item }) => item);
    if (held.length > 0 && before.length === held.length && before.every((item, at) => saysTheSame(item, held[at])))
      found.length -= held.length;
    for (const item of history) found.push({ item, path: placed.path, again: true });
  }
  return found;
}

/** What goes before a compaction in the answer: what the user said. */
export function isOfUser(item: Item): boolean {
  return item["type"] === "message" && item["role"] === "user";
}

function historyIn(item: unknown, counter: BodyCounter): Item[] | undefined {
  if (typeof item !== "object" || item === null) return undefined;
  const { type, encrypted_content: sealed } = item as Item;
  if (type !== "compaction" || typeof sealed !== "string") return undefined;
  const known = opened.get(item);
  if (known) return known;
  const history = openSeal(mark, sealed, counter);
  if (Array.isArray(history)) opened.set(item, history as Item[]);
  return Array.isArray(history) ? (history as Item[]) : undefined;
}

function saysTheSame(item: unknown, held: Item | undefined): boolean {
  if (typeof item !== "object" || item === null || !held) return false;
  const { role, content } = item as Item;
  return role === held["role"] && JSON.stringify(content) === JSON.stringify(held["content"]);
}
