import { announcement, Changing } from "../parts/changing.ts";
import { Conversation } from "./conversation.ts";
import type { Keeper } from "./conversation.ts";
import { ConversationSaver } from "./conversation-saver.ts";
import { findInConversation } from "./conversation-search.ts";
import type { Found } from "./conversation-search.ts";
import { storeName } from "./conversation-store.ts";
import type { ConversationRecord } from "./conversation-store.ts";
import { Deletions } from "./deletions.ts";
import { Imports } from "./import-files.ts";
import type { Settings } from "./settings.ts";
import { readTurns } from "./stored-turn.ts";
import { Tabs } from "./tabs.ts";
import type { Turn } from "./turn.ts";

/** The conversations that this browser keeps, and the one that is shown. */
export class Conversations extends Changing implements Keeper {
  current: Conversation;
  /** The latest first. */
  list: readonly ConversationRecord[] = [];
  /** The conversation in the address is being loaded. */
  loading = false;
  /** A turn that the view scrolls to. */
  sought = "";
  readonly #settings: Settings;
  /** Conversations that this tab has loaded or begun, by id. */
  readonly #open = new Map<string, Conversation>();
  readonly deletions: Deletions = new Deletions(() => this.changed());
  readonly imports: Imports;
  readonly #saver: ConversationSaver;
  readonly #tabs: Tabs;

  constructor(settings: Settings) {
    super();
    this.#settings = settings;
    this.#saver = new ConversationSaver(storeName, {
      open: this.#open,
      stored: (id, turns) => this.#tabs.sendChanged(id, turns),
      gone: (id) => this.#forget(id),
      settled: () => this.#sendReceiving(),
      changed: () => this.changed(),
    });
    this.#tabs = new Tabs({
      changed: (id, turns) => void this.#reload(id, turns),
      deleted: (id) => this.#forget(id),
      receivingChanged: (ids) => {
        // It was loaded before this tab heard that the answer grows elsewhere, or the other tab has stored it while it was closed.
        for (const id of ids) if (this.#open.has(id)) void this.#reload(id);
        this.changed();
      },
    });
    this.imports = new Imports({
      isLeaving: () => this.#saver.isLeaving,
      shown: () => this.current,
      has: (id) => this.#saver.has(id),
      add: (record, turns) => this.#saver.add(record, turns),
      list: (records) => this.#take([...records, ...this.list]),
      show: async (id) => {
        const conversation = await this.get(id);
        if (!conversation) return;
        this.#show(conversation);
        this.#showAddress();
      },
      changed: () => this.changed(),
    });
    this.current = this.#begin();
  }

  /** Why conversations are not kept, as a sentence; "" if they are. */
  get problem(): string {
    return this.#saver.problem;
  }

  /** Opens the store and the conversation in the address. Call it once. */
  async start(): Promise<void> {
    this.#tabs.start();
    addEventListener("hashchange", () => this.#follow());
    const stored = await this.#saver.list();
    // A question may have been asked meanwhile.
    const listed = new Set(this.list.map(({ id }) => id));
    this.#take([...this.list, ...stored.filter(({ id }) => !listed.has(id))]);
    void this.imports.goOn();
    this.#follow();
    if (!this.loading) this.#settings.shown(this.current.id);
  }

  /** The address of the conversation that is shown, after `#`. */
  get address(): string {
    return this.current.turns.length > 0 ? `play/${this.current.id}` : "play";
  }

  /** Whether an answer of a conversation is being received, in this tab or in another one. */
  receives(id: string): boolean {
    return this.#open.get(id)?.running === true || this.elsewhere(id);
  }

  /** Whether an answer of a conversation is being received in another tab. */
  elsewhere(id: string): boolean {
    return this.#tabs.receives(id);
  }

  /** Shows a conversation at one of its turns. */
  async reveal(id: string, turn: string): Promise<void> {
    const conversation = await this.get(id);
    if (!conversation) return;
    conversation.show(turn);
    this.#show(conversation, turn);
    this.#showAddress();
  }

  /** Shows a new conversation. The address stays as it is. */
  begin(): void {
    if (this.address !== "play") this.#show(this.#begin());
  }

  /** Changes a title. A blank one changes nothing. */
  async rename(id: string, title: string): Promise<void> {
    const conversation = await this.get(id);
    if (!conversation || title.trim() === "") return;
    conversation.title = title.trim();
    conversation.changed();
    this.keep(conversation, []);
  }

  /** Stops its answer, and deletes a conversation. It can be restored until the page is closed. */
  async delete(id: string): Promise<void> {
    const conversation = this.#open.get(id);
    conversation?.stop();
    const wasShown = this.current.id === id;
    const title = conversation?.title ?? this.list.find((record) => record.id === id)?.title ?? "";
    let turns: readonly Turn[] = [];
    let record = conversation?.record;
    try {
      const stored = await this.#saver.delete(id);
      record ??= stored?.record;
      turns = conversation?.tree.all ?? readTurns(stored?.turns ?? []);
    } catch {
      return;
    }
    this.#forget(id);
    this.#tabs.sendDeleted(id);
    if (!record) return;
    const kept = record;
    const undo = (): void => {
      const restored = this.#begin(kept);
      restored.tree.addAll(turns, kept.shown);
      this.keep(
        restored,
        turns.map(({ id }) => id),
      );
      if (!wasShown) return;
      this.#show(restored);
      this.#showAddress();
    };
    this.deletions.add({ text: `Deleted “${title}”.`, undo });
  }

  /** Called by a conversation of which a version was removed. It can be restored until the page is closed. */
  removed({ id }: Conversation, turns: readonly Turn[]): void {
    const undo = async (): Promise<void> => (await this.get(id))?.restore(turns);
    this.deletions.add({ text: "Deleted a version.", undo });
  }

  /** Returns a conversation; undefined if it is not kept. */
  async get(id: string): Promise<Conversation | undefined> {
    const open = this.#open.get(id);
    if (open) return open;
    const stored = await this.#saver.load(id);
    // It may have been opened twice meanwhile.
    if (!stored || this.#open.has(id)) return this.#open.get(id);
    const conversation = this.#begin(stored.record);
    conversation.tree.addAll(readTurns(stored.turns), stored.record.shown);
    this.#markInterrupted(conversation);
    return conversation;
  }

  /** Searches titles and texts for a text, in any case. Reports each conversation as soon as it is found, the latest first. */
  async search(text: string, signal: AbortSignal, report: (found: Found) => void): Promise<void> {
    const sought = text.trim().toLowerCase();
    for (const record of this.list) {
      if (signal.aborted) return;
      const open = this.#open.get(record.id);
      const turns = open?.tree.all ?? readTurns((await this.#saver.load(record.id))?.turns ?? []);
      if (signal.aborted) return;
      const found = findInConversation(record, turns, sought);
      if (found) report(found);
    }
  }

  /** Shows the conversation in the address `#play/ID`; a new one for `#play`. */
  #follow(): void {
    const [view = "", id = ""] = location.hash.slice(1).split("/");
    if (view !== "play" && view !== "") return;
    if (id === "") return this.begin();
    if (id === this.current.id) return;
    this.loading = true;
    this.changed();
    void this.get(id).then((conversation) => {
      this.loading = false;
      if (location.hash !== `#play/${id}`) return;
      if (!conversation) announcement.say("This browser does not keep the conversation of this address.");
      this.#show(conversation ?? this.#begin());
      this.#showAddress();
    });
  }

  #begin(record?: ConversationRecord): Conversation {
    const conversation = new Conversation(this.#settings, record, this);
    this.#open.set(conversation.id, conversation);
    return conversation;
  }

  #show(conversation: Conversation, sought = ""): void {
    this.sought = sought;
    this.current.inBackground = true;
    this.current = conversation;
    this.#open.set(conversation.id, conversation);
    // The store has the others: they are loaded again when they are shown.
    for (const open of this.#open.values()) {
      const isBusy = open.running || open.draft !== "" || this.#saver.isBusy(open);
      if (!isBusy && open !== conversation) this.#open.delete(open.id);
    }
    conversation.inBackground = false;
    this.loading = false;
    this.#settings.shown(conversation.id);
    this.changed();
  }

  /** Replaces the address by that of the conversation that is shown. */
  #showAddress(): void {
    const [view = ""] = location.hash.slice(1).split("/");
    if (view === "play" || view === "") history.replaceState(null, "", `#${this.address}`);
  }

  /** Marks the answers that were growing when they were stored and that no tab receives. */
  #markInterrupted(conversation: Conversation): void {
    if (this.elsewhere(conversation.id)) return;
    conversation.tree.markInterrupted(conversation.runningTurn);
  }

  /** Called by a conversation that has changed: stores the turns with these ids, one write after the other. */
  keep(conversation: Conversation, ids: readonly string[]): void {
    // It was deleted, here or in another tab: a last write would restore a part of it.
    if (this.#open.get(conversation.id) !== conversation) return;
    // An answer that grows is stored without an update of the views.
    const listed = this.list.find(({ id }) => id === conversation.id);
    if (listed?.changed !== conversation.changedAt || listed.title !== conversation.title) {
      this.#update(conversation.record);
      if (conversation === this.current) this.#showAddress();
    }
    // Other tabs hear that an answer has ended once it is stored: they would else mark what they have of it as interrupted.
    if (conversation.running) this.#sendReceiving();
    void this.#saver.save(conversation, ids);
  }

  /** Removes a conversation that was deleted, here or in another tab. */
  #forget(id: string): void {
    const conversation = this.#open.get(id);
    this.#open.delete(id);
    this.#saver.forget(id);
    this.list = this.list.filter((record) => record.id !== id);
    if (conversation) {
      conversation.stop();
      if (this.current === conversation) {
        this.#show(this.#begin());
        this.#showAddress();
      }
    }
    this.#sendReceiving();
    this.changed();
  }

  #update(record: ConversationRecord): void {
    this.#take([record, ...this.list.filter(({ id }) => id !== record.id)]);
  }

  #take(records: readonly ConversationRecord[]): void {
    this.list = records.toSorted((a, b) => b.changed - a.changed || (a.id < b.id ? 1 : -1));
    this.changed();
  }

  #sendReceiving(): void {
    const ids = [...this.#open.values()].flatMap(({ id, running }) => (running ? [id] : []));
    // The marks in the list change with it.
    if (this.#tabs.sendReceiving(ids)) this.changed();
  }

  /** Reads what another tab has stored: these turns, or all that are new or whose answers are incomplete here. */
  async #reload(id: string, changed?: readonly string[]): Promise<void> {
    const stored = await this.#saver.load(id);
    if (!stored) return;
    this.#update(stored.record);
    const conversation = this.#open.get(id);
    if (!conversation) return;
    conversation.title = stored.record.title;
    conversation.changedAt = stored.record.changed;
    const all = new Map(readTurns(stored.turns).map((turn) => [turn.id, turn]));
    const mayDiffer = (id: string): boolean => {
      const known = conversation.tree.get(id);
      return !known || (known.kind === "answer" && ["running", "interrupted"].includes(known.answer.state));
    };
    const turns = (changed ?? [...all.keys()].filter(mayDiffer)).flatMap((id) => all.get(id) ?? []);
    // A turn of this tab that is not stored yet is not one that was removed: only the other tab knows which it has removed.
    conversation.merge(turns, changed?.filter((id) => !all.has(id)) ?? []);
    this.#markInterrupted(conversation);
  }
}
