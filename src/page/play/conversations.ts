import { announcement, Changing } from "../parts/changing.ts";
import { Conversation } from "./conversation.ts";
import type { Keeper } from "./conversation.ts";
import { BrowserStore, MemoryStore, storeName } from "./conversation-store.ts";
import type { ConversationRecord, ConversationStore } from "./conversation-store.ts";
import type { Settings } from "./settings.ts";
import { readTurns, storedTurn } from "./stored-turn.ts";
import { conversationsIn, PendingImports } from "./import-files.ts";
import type { PendingImport } from "./import-files.ts";
import { newId } from "./turn.ts";
import type { Turn } from "./turn.ts";

/** The messages that tabs exchange. */
type Message =
  /** Turns were stored, changed or removed. */
  | { readonly kind: "changed"; readonly id: string; readonly turns: readonly string[] }
  | { readonly kind: "deleted"; readonly id: string }
  /** The conversations whose answers this tab receives. */
  | { readonly kind: "receiving"; readonly tab: string; readonly ids: readonly string[] }
  /** A new tab: the others answer with "receiving". */
  | { readonly kind: "hello" };

/** What was deleted, and how to restore it. */
interface Deleted {
  readonly text: string;
  readonly undo: () => Promise<void> | void;
}

/** A conversation whose title or text contains the search text. */
export interface Found {
  readonly record: ConversationRecord;
  /** The first turn that contains it; undefined: only the title does. */
  readonly turn?: string;
  /** The text around it, and where it is. */
  readonly before?: string;
  readonly match?: string;
  readonly after?: string;
}

/** After this time without being gone, the page stays, in milliseconds. */
const stayedAfterMs = 30_000;

/** How often an import says how far it is, in milliseconds. */
const importReportMs = 200;

/** Characters of text that a search result shows before and after the match. */
const contextLength = 40;

/** The conversations that this browser keeps, and the one that is shown. */
export class Conversations extends Changing implements Keeper {
  current: Conversation;
  /** The latest first. */
  list: readonly ConversationRecord[] = [];
  /** The conversation in the address is being loaded. */
  loading = false;
  /** Why conversations are not kept, as a sentence; "" if they are. */
  problem = "";
  /** The latest last. */
  deleted: readonly Deleted[] = [];
  /** The file whose conversations are being added, and how far; `total` is 0 while it is read. */
  importing: { readonly name: string; readonly done: number; readonly total: number } | undefined;
  /** Why the last file was not imported, as a sentence; "" if it was. */
  importProblem = "";
  /** A turn that the view scrolls to. */
  sought = "";
  readonly #settings: Settings;
  #store: ConversationStore = new BrowserStore(storeName);
  /** Conversations that this tab has loaded or begun, by id. */
  readonly #open = new Map<string, Conversation>();
  /** Ids of turns to store, by conversation. */
  readonly #unsaved = new Map<Conversation, Set<string>>();
  readonly #saving = new Set<Conversation>();
  readonly #imports = new PendingImports(`${storeName}imports`);
  /** Files are imported one after the other. */
  #importQueue: Promise<void> = Promise.resolve();
  /** Conversations that are stored, as far as this tab knows. */
  readonly #stored = new Set<string>();
  readonly #tabs = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel(storeName);
  readonly #tab = newId();
  /** Resolves when this tab holds the lock of its id, which it keeps until it ends; immediately where the browser has no Web Locks. */
  readonly #hasLock = new Promise<void>((resolve) => {
    const held = navigator.locks?.request(this.#lockOf(this.#tab), () => (resolve(), new Promise(() => {})));
    if (held) held.catch(resolve);
    else resolve();
  });
  /** The ids that were sent last. */
  #sentReceiving = "";
  #isLeaving = false;
  /** Tab → conversations whose answers it receives. */
  readonly #receiving = new Map<string, ReadonlySet<string>>();

  constructor(settings: Settings) {
    super();
    this.#settings = settings;
    this.current = this.#begin();
  }

  /** Opens the store and the conversation in the address. Call it once. */
  async start(): Promise<void> {
    this.#tabs?.addEventListener("message", ({ data }: MessageEvent<Message>) => void this.#onMessage(data));
    this.#send({ kind: "hello" });
    addEventListener("hashchange", () => this.#follow());
    // A phone may end a page in the background without another event.
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") this.#saveAtOnce();
    });
    // Chromium breaks the connections between these two events; some browsers on phones have only the second one.
    addEventListener("beforeunload", () => this.#leave());
    addEventListener("pagehide", () => {
      this.#leave();
      this.#send({ kind: "receiving", tab: this.#tab, ids: [] });
    });
    try {
      const stored = await this.#store.list();
      // A question may have been asked meanwhile.
      const listed = new Set(this.list.map(({ id }) => id));
      this.#take([...this.list, ...stored.filter(({ id }) => !listed.has(id))]);
    } catch {
      this.#store = new MemoryStore();
      this.problem = "This browser stores nothing for this page: conversations are lost when the page is closed.";
      this.changed();
    }
    void this.#continueImports();
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
    return [...this.#receiving.values()].some((ids) => ids.has(id));
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
      const stored = await this.#store.delete(id);
      record ??= stored?.record;
      turns = conversation?.tree.all ?? readTurns(stored?.turns ?? []);
    } catch (error) {
      return this.#fail(error);
    }
    this.#forget(id);
    this.#send({ kind: "deleted", id });
    if (!record) return;
    const kept = record;
    const undo = (): void => {
      this.#stored.delete(id);
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
    this.#offerUndo({ text: `Deleted “${title}”.`, undo });
  }

  /** Called by a conversation of which a version was removed. It can be restored until the page is closed. */
  removed({ id }: Conversation, turns: readonly Turn[]): void {
    const undo = async (): Promise<void> => (await this.get(id))?.restore(turns);
    this.#offerUndo({ text: "Deleted a version.", undo });
  }

  /** Restores what was deleted last. */
  async undo(): Promise<void> {
    const last = this.deleted.at(-1);
    this.deleted = this.deleted.slice(0, -1);
    this.changed();
    await last?.undo();
    announcement.say("Restored.");
  }

  /** Removes what was deleted from memory. */
  forgetDeleted(): void {
    this.deleted = [];
    this.changed();
  }

  /** Returns a conversation; undefined if it is not kept. */
  async get(id: string): Promise<Conversation | undefined> {
    const open = this.#open.get(id);
    if (open) return open;
    let stored;
    try {
      stored = await this.#store.load(id);
    } catch (error) {
      this.#fail(error);
    }
    // It may have been opened twice meanwhile.
    if (!stored || this.#open.has(id)) return this.#open.get(id);
    const conversation = this.#begin(stored.record);
    this.#stored.add(id);
    conversation.tree.addAll(readTurns(stored.turns), stored.record.shown);
    this.#markInterrupted(conversation);
    return conversation;
  }

  /**
   * Adds the conversations of a file, under new ids, and shows the first one. Continues while another view is shown, and after the page was closed
   * and opened again. Returns false if the file has a mistake; `importProblem` is the reason.
   */
  async import(name: string, file: Blob): Promise<boolean> {
    const pending: PendingImport = { id: newId(), name, file };
    this.importProblem = "";
    // Where the browser stores nothing, or no more, the import lasts as long as the page.
    await this.#imports.add(pending).catch(() => {});
    let isDone = false;
    this.#importQueue = this.#importQueue.then(async () => {
      isDone = await this.#import(pending);
    });
    await this.#importQueue;
    return isDone;
  }

  dismissImportProblem(): void {
    this.importProblem = "";
    this.changed();
  }

  /** Goes on with the files that were being imported when the page was closed. */
  async #continueImports(): Promise<void> {
    for (const pending of await this.#imports.all().catch(() => []))
      this.#importQueue = this.#importQueue.then(async () => void (await this.#import(pending)));
  }

  async #import(pending: PendingImport): Promise<boolean> {
    const { id } = pending;
    // Another tab may be at it.
    if (!navigator.locks) return this.#importAll(pending);
    const isDone: unknown = await navigator.locks.request(`${storeName}import/${id}`, { ifAvailable: true }, (lock) =>
      lock === null ? false : this.#importAll(pending),
    );
    return isDone === true;
  }

  async #importAll({ id, name, file }: PendingImport): Promise<boolean> {
    const before = this.current;
    let added: ConversationRecord[] = [];
    let count = 0;
    const report = (done: number, total: number): void => {
      this.importing = { name, done, total };
      if (added.length > 0) this.#take([...added, ...this.list]);
      added = [];
      this.changed();
    };
    report(0, 0);
    announcement.say(`Importing ${name}.`);
    let first = "";
    let reportedAt = performance.now();
    try {
      for await (const { record, turns, at, total } of conversationsIn(file)) {
        // The same ids when the import continues after the page was closed: what was added already is not added again.
        const own = { ...record, id: `${id}${at.toString(16)}` };
        if (at === 0) first = own.id;
        count = at + 1;
        if (!this.#stored.has(own.id) && !this.list.some((one) => one.id === own.id)) {
          await this.#store.save({ isNew: true, record: own, turns, removed: [] });
          this.#stored.add(own.id);
          added.push(own);
          this.#send({ kind: "changed", id: own.id, turns: [] });
        }
        if (performance.now() - reportedAt < importReportMs && count < total) continue;
        report(count, total);
        reportedAt = performance.now();
      }
    } catch (error) {
      if (this.#isLeaving) return false;
      const text = `${name} was not imported${count === 0 ? "" : " completely"}. ${messageOf(error)}.`;
      this.importProblem = text;
      announcement.say(text);
    }
    this.importing = undefined;
    this.changed();
    await this.#imports.remove(id).catch(() => {});
    if (this.importProblem !== "") return false;
    announcement.say(count === 1 ? "1 conversation imported." : `${count} conversations imported.`);
    const shown = await this.get(first);
    // Unless the user is elsewhere by now.
    if (shown && this.current === before && before.draft === "") {
      this.#show(shown);
      this.#showAddress();
    }
    return true;
  }

  /** Searches titles and texts for a text, in any case. Reports each conversation as soon as it is found, the latest first. */
  async search(text: string, signal: AbortSignal, report: (found: Found) => void): Promise<void> {
    const sought = text.trim().toLowerCase();
    for (const record of this.list) {
      if (signal.aborted) return;
      const open = this.#open.get(record.id);
      const turns = open?.tree.all ?? readTurns((await this.#store.load(record.id))?.turns ?? []);
      if (signal.aborted) return;
      const found = findText(
        turns.toSorted((a, b) => a.created - b.created),
        sought,
      );
      if (found || record.title.toLowerCase().includes(sought)) report({ record, ...found });
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
      const isBusy = open.running || open.draft !== "" || this.#unsaved.has(open) || this.#saving.has(open);
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

  #offerUndo(deleted: Deleted): void {
    this.deleted = [...this.deleted, deleted];
    announcement.say(`${deleted.text} Undo is below the list of conversations.`);
    this.changed();
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
    const unsaved = this.#unsaved.get(conversation) ?? new Set();
    for (const id of ids) unsaved.add(id);
    this.#unsaved.set(conversation, unsaved);
    // An answer that grows is stored without an update of the views.
    const listed = this.list.find(({ id }) => id === conversation.id);
    if (listed?.changed !== conversation.changedAt || listed.title !== conversation.title) {
      this.#update(conversation.record);
      if (conversation === this.current) this.#showAddress();
    }
    // Other tabs hear that an answer has ended once it is stored: they would else mark what they have of it as interrupted.
    if (conversation.running) this.#sendReceiving();
    void this.#save(conversation);
  }

  async #save(conversation: Conversation): Promise<void> {
    const { id } = conversation;
    if (this.#isLeaving || this.#saving.has(conversation)) return;
    this.#saving.add(conversation);
    for (;;) {
      const unsaved = this.#unsaved.get(conversation);
      if (!unsaved || this.#isLeaving || this.#open.get(id) !== conversation) break;
      this.#unsaved.delete(conversation);
      const ids = [...unsaved];
      const turns = ids.flatMap((id) => conversation.tree.get(id) ?? []);
      const removed = ids.filter((id) => conversation.tree.get(id) === undefined);
      try {
        const change = { isNew: !this.#stored.has(id), record: conversation.record, removed };
        const isThere = await this.#store.save({ ...change, turns: turns.map(storedTurn) });
        if (!isThere) {
          this.#forget(id);
          break;
        }
        this.#stored.add(id);
        if (this.#store instanceof BrowserStore) this.#recover();
        this.#send({ kind: "changed", id, turns: ids });
      } catch (error) {
        // They are tried again with the next change.
        this.#unsaved.set(conversation, new Set([...ids, ...(this.#unsaved.get(conversation) ?? [])]));
        this.#fail(error);
        break;
      }
    }
    this.#saving.delete(conversation);
    this.#sendReceiving();
  }

  /**
   * Stores growing answers before the page is gone, and nothing after that: their connections break, which is no failure. If the page stays,
   * because its user has cancelled, what has changed meanwhile is stored later.
   */
  #leave(): void {
    if (this.#isLeaving) return;
    this.#saveAtOnce();
    this.#isLeaving = true;
    setTimeout(() => {
      this.#isLeaving = false;
      for (const conversation of this.#unsaved.keys()) void this.#save(conversation);
    }, stayedAfterMs);
  }

  /** Stores growing answers; does not wait. */
  #saveAtOnce(): void {
    if (this.#isLeaving) return;
    for (const { id, running, runningTurn = "", tree } of this.#open.values()) {
      const turn = tree.get(runningTurn);
      if (running && turn && this.#stored.has(id)) this.#store.saveAtOnce(id, storedTurn(turn));
    }
  }

  #fail(error: unknown): void {
    const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
    const problem = isFull
      ? "The browser's storage is full, so the newest messages are lost when the page is closed: delete or export conversations."
      : "The browser cannot store conversations now, so the newest messages are lost when the page is closed.";
    if (this.problem !== problem) announcement.say(problem);
    this.problem = problem;
    this.changed();
  }

  #recover(): void {
    if (this.problem === "") return;
    this.problem = "";
    for (const conversation of this.#unsaved.keys()) void this.#save(conversation);
    this.changed();
  }

  /** Removes a conversation that was deleted, here or in another tab. */
  #forget(id: string): void {
    const conversation = this.#open.get(id);
    this.#open.delete(id);
    this.#stored.delete(id);
    this.list = this.list.filter((record) => record.id !== id);
    if (conversation) {
      conversation.stop();
      this.#unsaved.delete(conversation);
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

  #send(message: Message): void {
    this.#tabs?.postMessage(message);
  }

  #sendReceiving(isReply = false): void {
    const ids = [...this.#open.values()].flatMap(({ id, running }) => (running ? [id] : []));
    const state = ids.join();
    // A tab that hears of this one waits for its lock, so this tab must have it first.
    if (isReply || state !== this.#sentReceiving)
      void this.#hasLock.then(() => this.#send({ kind: "receiving", tab: this.#tab, ids }));
    // The marks in the list change with it.
    if (state !== this.#sentReceiving) this.changed();
    this.#sentReceiving = state;
  }

  async #onMessage(message: Message): Promise<void> {
    switch (message.kind) {
      case "hello":
        return this.#sendReceiving(true);
      case "deleted":
        return this.#forget(message.id);
      case "receiving":
        if (!this.#receiving.has(message.tab)) this.#awaitEnd(message.tab);
        return this.#setReceiving(message.tab, message.ids);
      case "changed":
        return this.#reload(message.id, message.turns);
    }
  }

  #setReceiving(tab: string, ids: readonly string[]): void {
    const known = this.#receiving.get(tab);
    this.#receiving.set(tab, new Set(ids));
    for (const conversation of this.#open.values()) {
      const isReceived = ids.includes(conversation.id);
      // It was loaded before this tab heard that the answer grows elsewhere, or the other tab has stored it while it was closed.
      if (isReceived !== (known?.has(conversation.id) ?? false)) void this.#reload(conversation.id);
    }
    this.changed();
  }

  /**
   * Waits until another tab has ended. A tab that crashes sends no message, but the browser releases its lock. Web Locks exist only in secure
   * contexts (HTTPS, or this machine); elsewhere, the answer of a tab that has crashed stays marked until the page is reloaded.
   */
  #awaitEnd(tab: string): void {
    void navigator.locks?.request(this.#lockOf(tab), { mode: "shared" }, () => {
      this.#setReceiving(tab, []);
      this.#receiving.delete(tab);
    });
  }

  #lockOf(tab: string): string {
    return `${storeName}tab/${tab}`;
  }

  /** Reads what another tab has stored: these turns, or all that are new or whose answers are incomplete here. */
  async #reload(id: string, changed?: readonly string[]): Promise<void> {
    try {
      const stored = await this.#store.load(id);
      if (!stored) return;
      this.#stored.add(id);
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
    } catch (error) {
      this.#fail(error);
    }
  }
}

function messageOf(error: unknown): string {
  if (error instanceof DOMException && error.name === "QuotaExceededError") return "The browser's storage is full";
  return error instanceof Error ? error.message : String(error);
}

/** Returns the first of the turns whose text contains a text in lower case, with what is around it. */
function findText(turns: readonly Turn[], sought: string): Omit<Found, "record"> | undefined {
  for (const turn of turns) {
    for (const text of textsOf(turn)) {
      const at = text.toLowerCase().indexOf(sought);
      if (at === -1) continue;
      const [from, to] = [Math.max(0, at - contextLength), at + sought.length];
      return {
        turn: turn.id,
        before: (from > 0 ? "…" : "") + text.slice(from, at),
        match: text.slice(at, to),
        after: text.slice(to, to + contextLength) + (to + contextLength < text.length ? "…" : ""),
      };
    }
  }
  return undefined;
}

function textsOf(turn: Turn): readonly string[] {
  if (turn.kind === "question")
    return [turn.text, ...(turn.files ?? []).flatMap((file) => [file.name, ...("text" in file ? [file.text] : [])])];
  if (turn.kind === "results") return turn.results.map(({ text }) => text);
  return turn.answer.choices.map(({ text }) => text.toString());
}
