import type { Steps } from "../../../core/steps.ts";
import { StepCounter } from "../../../core/steps.ts";
import { base64, readBase64Json } from "../../base64-json.ts";
import { BodyCounter } from "../../body-counter.ts";
import { idPrefixes, ResponseIds } from "../ids.ts";
import type { StoredItem } from "./stored-response.ts";

/** Items that are shown with a status, though a client need not send one. Source: OpenAI's specification, `ItemResource`. */
const itemsWithStatus: ReadonlySet<unknown> = new Set([
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
]);

const prefixes: ReadonlyMap<unknown, string> = new Map(Object.entries(idPrefixes));

/**
 * Returns the input of a request as it is stored and shown: items with ids, messages with parts, and the items that references refer to.
 * References to unknown items are left out.
 */
export function storedInputItems(
  input: unknown,
  references: ReadonlyMap<string, StoredItem>,
  {
    responseId,
    created,
    random,
  }: { readonly responseId: string; readonly created: number; readonly random: () => number },
): StoredItem[] {
  const ids = new ResponseIds(random, responseId);
  const whole = (item: StoredItem): StoredItem[] => {
    const { id, type: named, status, ...rest } = item;
    const type = named ?? ((item["role"] ?? null) === null ? "item_reference" : "message");
    if (type === "item_reference") return references.has(String(id)) ? [references.get(String(id)) ?? item] : [];
    const own = typeof id === "string" ? id : ids.item(prefixes.get(type) ?? "item_", created);
    if (type !== "message") {
      const shown = status ?? (itemsWithStatus.has(type) ? "completed" : undefined);
      return [{ id: own, type, ...(shown !== undefined && { status: shown }), ...rest }];
    }
    const { content, role, ...others } = rest;
    return [{ id: own, type, status: status ?? "completed", content: partsOf(content, role), ...others, role }];
  };
  if (typeof input === "string") return whole({ role: "user", content: input });
  return Array.isArray(input) ? input.flatMap((item: unknown) => (isItem(item) ? whole(item) : [])) : [];
}

function partsOf(content: unknown, role: unknown): unknown {
  if (typeof content !== "string") return content;
  return role === "assistant"
    ? [{ type: "output_text", annotations: [], logprobs: [], text: content }]
    : [{ type: "input_text", text: content }];
}

function isItem(value: unknown): value is StoredItem {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const compactionPrefix = "truewire.compaction.1.";

/**
 * Encodes a conversation as the `encrypted_content` of a compaction. It contains every item, so nothing is lost and no model is needed.
 * It is not encrypted: its client has sent or received all of it.
 */
export function compactedItems(items: readonly StoredItem[]): string {
  const json = JSON.stringify(items.filter((item) => !isTrigger(item)));
  return compactionPrefix + base64(new TextEncoder().encode(json));
}

/** The conversations of compactions in the requests that are being read: some are looked up more than once. */
const decoded = new WeakMap<object, StoredItem[]>();

/** An item of an input, and its place in the request. */
export interface PlacedItem {
  readonly item: unknown;
  readonly path: string;
  /** The item was accepted in an earlier request, and is not validated strictly again. */
  readonly again?: true;
}

/**
 * Returns the items with the conversations of our compactions in their place. The answer of `/responses/compact` has the messages of the
 * user, which the compaction contains, too, before the compaction: they are left out, unless the client has changed them. A
 * `compaction_trigger` before a compaction is left out with everything before it.
 */
export function* withoutCompactions(items: readonly PlacedItem[]): Steps<PlacedItem[]> {
  const found: PlacedItem[] = [];
  const counter = new BodyCounter();
  const pace = new StepCounter();
  for (const placed of items) {
    if (pace.endsStep()) yield;
    const history = historyIn(placed.item, counter);
    if (!history) {
      found.push(placed);
      continue;
    }
    // A triggered compaction replaces everything before it.
    if (isTrigger(found.at(-1)?.item)) found.length = 0;
    const users = history.filter(isOfUser);
    const before = found.slice(Math.max(0, found.length - users.length)).map(({ item }) => item);
    if (users.length > 0 && before.length === users.length && before.every((item, at) => isSame(item, users[at])))
      found.length -= users.length;
    for (const item of history) found.push({ item, path: placed.path, again: true });
  }
  return found;
}

function isTrigger(item: unknown): boolean {
  return typeof item === "object" && item !== null && (item as StoredItem)["type"] === "compaction_trigger";
}

/** True for the messages that an answer of `/responses/compact` has before the compaction. */
export function isOfUser(item: StoredItem): boolean {
  return item["type"] === "message" && item["role"] === "user";
}

function historyIn(item: unknown, counter: BodyCounter): StoredItem[] | undefined {
  if (typeof item !== "object" || item === null) return undefined;
  const { type, encrypted_content: encoded } = item as StoredItem;
  if (type !== "compaction" || typeof encoded !== "string") return undefined;
  const known = decoded.get(item);
  if (known) return known;
  if (!encoded.startsWith(compactionPrefix)) return undefined;
  const history = readBase64Json(encoded.slice(compactionPrefix.length), counter);
  if (!Array.isArray(history)) return undefined;
  decoded.set(item, history as StoredItem[]);
  return history as StoredItem[];
}

function isSame(item: unknown, other: StoredItem | undefined): boolean {
  if (typeof item !== "object" || item === null || !other) return false;
  const { role, content } = item as StoredItem;
  return role === other["role"] && JSON.stringify(content) === JSON.stringify(other["content"]);
}
