import { FailureError, invalidRequest } from "../../core/failure.ts";
import type { Keyspaces } from "../port-state.ts";
import { charactersPerItem, GrowingList, History } from "../responses/state/history.ts";
import type { StoredItem } from "../responses/state/stored-response.ts";

/** The first line of a stored conversation. */
interface Beginning {
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
}

/** Each further line. An append adds one, so concurrent changes are all kept. */
export type ConversationChange =
  | { readonly items: readonly StoredItem[] }
  | { readonly metadata: Readonly<Record<string, string>> }
  | { readonly deleted: string };

/** A conversation as it was read from its store. Items keep their positions when others are deleted. */
export class StoredConversation {
  readonly beginning: Beginning;
  metadata: Readonly<Record<string, string>> = {};
  readonly items: StoredItem[] = [];
  /** The size of the text that was read, in bytes. */
  size = 0;
  readonly #positions = new Map<unknown, number>();
  /** By the ids of deleted items, the number of items at that time: a deletion removes all items with the id. */
  readonly #deleted = new Map<unknown, number>();
  #history: History | undefined = new History("conversation");

  constructor(beginning: Beginning) {
    this.beginning = beginning;
  }

  /** The approximate size in memory. */
  get characters(): number {
    return this.size + charactersPerItem * this.items.length;
  }

  apply(change: ConversationChange): void {
    if ("metadata" in change) this.metadata = change.metadata;
    else if ("deleted" in change) {
      if (this.positionOf(change.deleted) === undefined) return;
      this.#deleted.set(change.deleted, this.items.length);
      this.#history = undefined;
    } else {
      for (const item of change.items) {
        const known = this.#positions.get(item["id"]);
        if (known === undefined || this.#isDeleted(known)) this.#positions.set(item["id"], this.items.length);
        this.items.push(item);
      }
      this.#history = this.#history?.with(change.items);
    }
  }

  /** The position of the item with this id, of several the first one; undefined if no item has it, or if it was deleted. */
  positionOf(id: string): number | undefined {
    const at = this.#positions.get(id);
    return at === undefined || this.#isDeleted(at) ? undefined : at;
  }

  #isDeleted(at: number): boolean {
    return at < (this.#deleted.get(this.items[at]?.["id"]) ?? 0);
  }

  /** Returns the items before a position, as requests continue them. */
  history(before = this.items.length): History {
    if (before === this.items.length) return (this.#history ??= this.#read(before));
    return this.#read(before);
  }

  #read(before: number): History {
    const items = this.items.slice(0, before).filter((_, at) => !this.#isDeleted(at));
    return new History("conversation", new GrowingList(items));
  }
}

function keyOf(id: string): string {
  return `conversation ${id}`;
}

export async function putConversation(
  { stored }: Keyspaces,
  beginning: Beginning,
  changes: readonly ConversationChange[],
): Promise<void> {
  await stored.set(keyOf(beginning.id), `${JSON.stringify(beginning)}\n${changes.map(lineOf).join("")}`);
}

/** Line feeds on both sides: a line without an end is still being written, or a crash has torn it, and the next one is whole. */
function lineOf(change: ConversationChange): string {
  return `\n${JSON.stringify(change)}\n`;
}

/** Changes a conversation. Resolves to whether it still exists. */
export async function changeConversation(
  { stored }: Keyspaces,
  id: string,
  change: ConversationChange,
): Promise<boolean> {
  return stored.append(keyOf(id), lineOf(change));
}

/**
 * Reads a conversation. This process remembers it, so only what was added since is read. `param`: the parameter with the id. Rejects with
 * `FailureError`.
 */
export async function requireConversation(
  keyspaces: Keyspaces,
  id: string,
  param = "conversation_id",
): Promise<StoredConversation> {
  if (!id.startsWith("conv")) {
    const message = `Invalid '${param}': '${id}'. Expected an ID that begins with 'conv'.`;
    throw invalidRequest(message, param, "invalid_value");
  }
  const found = await findConversation(keyspaces, id);
  if (found) return found;
  throw conversationNotFound(id);
}

export async function findConversation(keyspaces: Keyspaces, id: string): Promise<StoredConversation | undefined> {
  const { stored, assembled } = keyspaces;
  const key = keyOf(id);
  for (;;) {
    const remembered = assembled.get(key);
    let conversation = remembered instanceof StoredConversation ? remembered : undefined;
    const from = conversation?.size ?? 0;
    const read = await stored.readFrom(key, from);
    if (!read) {
      assembled.delete(key);
      return undefined;
    }
    // Another request has read the same lines meanwhile.
    if (conversation && conversation.size !== from) continue;
    const end = read.text.lastIndexOf("\n") + 1;
    for (const line of read.text.slice(0, end).split("\n")) {
      if (line === "") continue;
      if (!conversation) {
        conversation = new StoredConversation(JSON.parse(line) as Beginning);
        continue;
      }
      const change = changeIn(line);
      if (change) conversation.apply(change);
    }
    if (!conversation) return undefined;
    // Counted from the end: a character that a crash has torn is decoded to one of another size.
    conversation.size = read.size - new TextEncoder().encode(read.text.slice(end)).length;
    assembled.set(key, conversation, conversation.characters);
    return conversation;
  }
}

function changeIn(line: string): ConversationChange | undefined {
  try {
    return JSON.parse(line) as ConversationChange;
  } catch {
    // It was torn by a crash.
    return undefined;
  }
}

/** Resolves to whether it existed. */
export async function deleteConversation({ stored, assembled }: Keyspaces, id: string): Promise<boolean> {
  assembled.delete(keyOf(id));
  return stored.delete(keyOf(id));
}

export function conversationNotFound(id: string): FailureError {
  return notFound(`Conversation with id '${id}' not found.`);
}

/** A 404 in OpenAI's words. */
export function notFound(message: string): FailureError {
  return new FailureError({ kind: "not-found", message, status: 404, param: null, code: null });
}
