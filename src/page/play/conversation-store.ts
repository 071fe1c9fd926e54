import { openDB } from "idb";
import type { DBSchema, IDBPDatabase } from "idb";
import { isObject } from "../../wire/core/json.ts";
import type { StoredTurn } from "./stored-turn.ts";

/** Storage of the page's own server: other servers may be at other paths of the same origin. */
export const storeName: string = `truewire${new URL("..", import.meta.url).pathname}`;

/** A conversation without its turns. */
export interface ConversationRecord {
  readonly id: string;
  readonly title: string;
  /** Milliseconds since 1970. */
  readonly created: number;
  /** When the last question was asked, or its answer ended, in milliseconds since 1970. */
  readonly changed: number;
  /** Place → id of the turn that was chosen there. */
  readonly shown: Readonly<Record<string, string>>;
}

/** A conversation as it is stored. Turns are `unknown`: another version of the page may have written them. */
export interface StoredConversation {
  readonly record: ConversationRecord;
  readonly turns: readonly unknown[];
}

/** What one write changes. */
export interface StoredChange {
  /** The conversation is stored for the first time, or again after it was deleted. */
  readonly isNew: boolean;
  readonly record: ConversationRecord;
  readonly turns: readonly StoredTurn[];
  /** Ids of turns. */
  readonly removed: readonly string[];
}

/** Where conversations are kept. Methods reject if that fails, for example because the disk is full. */
export interface ConversationStore {
  /** In no order. */
  list(): Promise<readonly ConversationRecord[]>;
  load(id: string): Promise<StoredConversation | undefined>;
  /** Returns false, and stores nothing, if the conversation is not new and not there: another tab has deleted it. */
  save(change: StoredChange): Promise<boolean>;
  /** Begins to store a turn before it returns: the page is being closed. */
  saveAtOnce(id: string, turn: StoredTurn): void;
  /** Returns what it has deleted. */
  delete(id: string): Promise<StoredConversation | undefined>;
}

interface Schema extends DBSchema {
  conversations: { key: string; value: ConversationRecord };
  /** One entry a turn: tabs that add turns to the same conversation do not overwrite each other. */
  turns: { key: [conversation: string, turn: string]; value: { readonly conversation: string; readonly id: string } };
}

/** Keeps conversations in IndexedDB. */
export class BrowserStore implements ConversationStore {
  readonly #name: string;
  #opening: Promise<IDBPDatabase<Schema>> | undefined;
  #open: IDBPDatabase<Schema> | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  async list(): Promise<readonly ConversationRecord[]> {
    return (await (await this.#database()).getAll("conversations")).filter(isRecord);
  }

  async load(id: string): Promise<StoredConversation | undefined> {
    const transaction = (await this.#database()).transaction(["conversations", "turns"]);
    const record = await transaction.objectStore("conversations").get(id);
    return isRecord(record) ? { record, turns: await transaction.objectStore("turns").getAll(turnsOf(id)) } : undefined;
  }

  async save({ isNew, record, turns, removed }: StoredChange): Promise<boolean> {
    const transaction = (await this.#database()).transaction(["conversations", "turns"], "readwrite");
    const [conversations, all] = [transaction.objectStore("conversations"), transaction.objectStore("turns")];
    const isThere = isNew || (await conversations.getKey(record.id)) !== undefined;
    const writes: Promise<unknown>[] = [transaction.done];
    if (isThere) {
      writes.push(conversations.put(record));
      for (const turn of turns) writes.push(all.put({ ...turn, conversation: record.id }));
      for (const id of removed) writes.push(all.delete([record.id, id]));
      // Without waiting for the results: the page may be reloaded before they arrive.
      transaction.commit();
    }
    await Promise.all(writes);
    return isThere;
  }

  saveAtOnce(id: string, turn: StoredTurn): void {
    const transaction = this.#open?.transaction("turns", "readwrite");
    if (!transaction) return;
    // The page may be gone before it hears of the outcome, so nothing waits for it.
    transaction.store.put({ ...turn, conversation: id }).catch(() => {});
    transaction.done.catch(() => {});
    transaction.commit();
  }

  async delete(id: string): Promise<StoredConversation | undefined> {
    const transaction = (await this.#database()).transaction(["conversations", "turns"], "readwrite");
    const [conversations, all] = [transaction.objectStore("conversations"), transaction.objectStore("turns")];
    const record = await conversations.get(id);
    const turns = await all.getAll(turnsOf(id));
    const deleted = [conversations.delete(id), all.delete(turnsOf(id)), transaction.done];
    transaction.commit();
    await Promise.all(deleted);
    return isRecord(record) ? { record, turns } : undefined;
  }

  #database(): Promise<IDBPDatabase<Schema>> {
    const forget = (): void => {
      this.#opening = undefined;
      this.#open = undefined;
    };
    this.#opening ??= openDB<Schema>(this.#name, 1, {
      upgrade(database) {
        database.createObjectStore("conversations", { keyPath: "id" });
        database.createObjectStore("turns", { keyPath: ["conversation", "id"] });
      },
      // Another tab has a newer version of the page, and waits for this one.
      blocking: (_current, _newer, event) => {
        forget();
        (event.target as IDBDatabase).close();
      },
      terminated: forget,
    }).then((database) => (this.#open = database));
    this.#opening.catch(forget);
    return this.#opening;
  }
}

/** Keeps conversations until the page is closed, where the browser has no IndexedDB. */
export class MemoryStore implements ConversationStore {
  readonly #all = new Map<string, { record: ConversationRecord; readonly turns: Map<string, StoredTurn> }>();

  async list(): Promise<readonly ConversationRecord[]> {
    return [...this.#all.values()].map(({ record }) => record);
  }

  async load(id: string): Promise<StoredConversation | undefined> {
    const found = this.#all.get(id);
    return found && { record: found.record, turns: [...found.turns.values()] };
  }

  async save({ isNew, record, turns, removed }: StoredChange): Promise<boolean> {
    let found = this.#all.get(record.id);
    if (!found) {
      if (!isNew) return false;
      this.#all.set(record.id, (found = { record, turns: new Map() }));
    }
    found.record = record;
    for (const turn of turns) found.turns.set(turn.id, turn);
    for (const id of removed) found.turns.delete(id);
    return true;
  }

  saveAtOnce(): void {
    // Nothing outlasts the page.
  }

  async delete(id: string): Promise<StoredConversation | undefined> {
    const found = await this.load(id);
    this.#all.delete(id);
    return found;
  }
}

function turnsOf(id: string): IDBKeyRange {
  return IDBKeyRange.bound([id], [id, []]);
}

function isRecord(value: unknown): value is ConversationRecord {
  if (!isObject(value)) return false;
  const { id, title, created, changed, shown } = value;
  return (
    typeof id === "string" &&
    typeof title === "string" &&
    typeof created === "number" &&
    typeof changed === "number" &&
    isObject(shown)
  );
}
