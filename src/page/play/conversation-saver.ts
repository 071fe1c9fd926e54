import { announcement } from "../parts/changing.ts";
import type { Conversation } from "./conversation.ts";
import { BrowserStore, MemoryStore } from "./conversation-store.ts";
import type { ConversationRecord, ConversationStore, StoredConversation } from "./conversation-store.ts";
import { storedTurn } from "./stored-turn.ts";
import type { StoredTurn } from "./stored-turn.ts";

/** After this time without being gone, the page stays, in milliseconds. */
const stayedAfterMs = 30_000;

/** What the saver reports to. */
interface Owner {
  /** The conversations of this tab, by id, without those that were deleted. */
  readonly open: ReadonlyMap<string, Conversation>;
  /** Turns with these ids were stored or removed. */
  stored?(id: string, turns: readonly string[]): void;
  /** Another tab has deleted a conversation. */
  gone?(id: string): void;
  /** The turns of a conversation are stored, or cannot be stored now. */
  settled?(): void;
  /** `problem` has changed. */
  changed?(): void;
}

/** Writes conversations to the store, one write after the other. */
export class ConversationSaver {
  /** Why conversations are not kept, as a sentence; "" if they are. */
  problem = "";
  /** The page is being closed: nothing is stored any more. */
  isLeaving = false;
  #isListening = false;
  readonly #owner: Owner;
  #store: ConversationStore;
  /** Ids of turns to store, by conversation. */
  readonly #unsaved = new Map<Conversation, Set<string>>();
  readonly #saving = new Set<Conversation>();
  /** Ids of conversations that are stored, as far as this tab knows. */
  readonly #stored = new Set<string>();

  /** @param database Name of the browser's database. */
  constructor(database: string, owner: Owner) {
    this.#store = new BrowserStore(database);
    this.#owner = owner;
  }

  /** The stored conversations, in no order. */
  async list(): Promise<readonly ConversationRecord[]> {
    try {
      const records = await this.#store.list();
      for (const { id } of records) this.#stored.add(id);
      return records;
    } catch {
      this.#store = new MemoryStore();
      this.problem = "This browser stores nothing for this page: conversations are lost when the page is closed.";
      this.#owner.changed?.();
      return [];
    }
  }

  /** Returns a stored conversation; undefined if it is not stored, or cannot be read. */
  async load(id: string): Promise<StoredConversation | undefined> {
    try {
      const stored = await this.#store.load(id);
      if (stored) this.#stored.add(id);
      return stored;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** Stores a conversation that no tab has open. Rejects if that fails. */
  async add(record: ConversationRecord, turns: readonly StoredTurn[]): Promise<void> {
    await this.#store.save({ isNew: true, record, turns, removed: [] });
    this.#stored.add(record.id);
    this.#owner.stored?.(record.id, []);
  }

  has(id: string): boolean {
    return this.#stored.has(id);
  }

  /** Returns what was stored. Rejects if that fails. */
  async delete(id: string): Promise<StoredConversation | undefined> {
    try {
      return await this.#store.delete(id);
    } catch (error) {
      this.#fail(error);
      throw error;
    }
  }

  /** A conversation was deleted, here or in another tab. */
  forget(id: string): void {
    this.#stored.delete(id);
    for (const one of this.#unsaved.keys()) if (one.id === id) this.#unsaved.delete(one);
  }

  /** Whether turns of a conversation are not stored yet. */
  isBusy(conversation: Conversation): boolean {
    return this.#unsaved.has(conversation) || this.#saving.has(conversation);
  }

  /** Stores the turns with these ids; those that the conversation does not have were removed. */
  async save(conversation: Conversation, ids: Iterable<string> = []): Promise<void> {
    this.#listen();
    this.#unsaved.set(conversation, new Set([...(this.#unsaved.get(conversation) ?? []), ...ids]));
    if (this.isLeaving || this.#saving.has(conversation)) return;
    this.#saving.add(conversation);
    while (await this.#saveOnce(conversation));
    this.#saving.delete(conversation);
    this.#owner.settled?.();
  }

  /** Returns false when there is nothing more to store, or it failed. */
  async #saveOnce(conversation: Conversation): Promise<boolean> {
    const { id, tree } = conversation;
    const ids = [...(this.#unsaved.get(conversation) ?? [])];
    if (!this.#unsaved.has(conversation) || this.isLeaving || this.#owner.open.get(id) !== conversation) return false;
    this.#unsaved.delete(conversation);
    const turns = ids.flatMap((turn) => tree.get(turn) ?? []).map(storedTurn);
    const removed = ids.filter((turn) => tree.get(turn) === undefined);
    try {
      const isNew = !this.#stored.has(id);
      const isThere = await this.#store.save({ isNew, record: conversation.record, turns, removed });
      if (!isThere) {
        this.#owner.gone?.(id);
        return false;
      }
      this.#stored.add(id);
      if (this.#store instanceof BrowserStore) this.#recover();
      this.#owner.stored?.(id, ids);
      return true;
    } catch (error) {
      // They are tried again with the next change.
      this.#unsaved.set(conversation, new Set([...ids, ...(this.#unsaved.get(conversation) ?? [])]));
      this.#fail(error);
      return false;
    }
  }

  /** Called with the first write. */
  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    // A phone may end a page in the background without another event.
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") this.#saveAtOnce();
    });
    // Chromium breaks the connections between these two events; some browsers on phones have only the second one.
    for (const event of ["beforeunload", "pagehide"]) addEventListener(event, () => this.#leave());
  }

  /**
   * Stores growing answers before the page is gone, and nothing after that: their connections break, which is no failure. If the page stays,
   * because its user has cancelled, what has changed meanwhile is stored later.
   */
  #leave(): void {
    if (this.isLeaving) return;
    this.#saveAtOnce();
    this.isLeaving = true;
    setTimeout(() => {
      this.isLeaving = false;
      this.#saveAll();
    }, stayedAfterMs);
  }

  /** Stores growing answers; does not wait. */
  #saveAtOnce(): void {
    if (this.isLeaving) return;
    for (const { id, running, runningTurn = "", tree } of this.#owner.open.values()) {
      const turn = tree.get(runningTurn);
      if (running && turn && this.#stored.has(id)) this.#store.saveAtOnce(id, storedTurn(turn));
    }
  }

  #saveAll(): void {
    for (const conversation of this.#unsaved.keys()) void this.save(conversation);
  }

  #fail(error: unknown): void {
    const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
    const problem = isFull
      ? "The browser's storage is full, so the newest messages are lost when the page is closed: delete or export conversations."
      : "The browser cannot store conversations now, so the newest messages are lost when the page is closed.";
    if (this.problem !== problem) announcement.say(problem);
    this.problem = problem;
    this.#owner.changed?.();
  }

  #recover(): void {
    if (this.problem === "") return;
    this.problem = "";
    this.#saveAll();
    this.#owner.changed?.();
  }
}
