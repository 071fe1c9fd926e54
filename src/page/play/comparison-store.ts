import type { Conversation, Keeper } from "./conversation.ts";
import { BrowserStore, storeName } from "./conversation-store.ts";
import type { StoredConversation } from "./conversation-store.ts";
import { storedTurn } from "./stored-turn.ts";

/** In the storage of the tab: its comparison, which a reload does not end. */
const storedName = "truewire.comparison";

/** How long comparisons of closed tabs are kept, in milliseconds. */
const keptMs = 7 * 24 * 60 * 60 * 1000;

/** After this time without being gone, the page stays, in milliseconds. */
const stayedAfterMs = 30_000;

/** What a tab keeps of its comparison in addition to the conversations. */
export interface TabComparison {
  /** Its conversations have the ids `ID/A` and `ID/B`. */
  readonly id: string;
  /** It is what Play shows. */
  readonly shown: boolean;
  /** The settings of both sides, as texts of `settingsText`. */
  readonly settings: readonly [a: string, b: string];
}

/** Returns the comparison of this tab; undefined: it has no comparison, or another version of the page wrote it. */
export function tabComparison(): TabComparison | undefined {
  try {
    const { id, shown, settings } = JSON.parse(sessionStorage.getItem(storedName) ?? "") as Partial<TabComparison>;
    const [a, b] = settings ?? [];
    if (typeof id !== "string" || typeof a !== "string" || typeof b !== "string") return undefined;
    return { id, shown: shown === true, settings: [a, b] };
  } catch {
    return undefined;
  }
}

export function keepTabComparison(comparison: TabComparison | undefined): void {
  try {
    if (comparison) sessionStorage.setItem(storedName, JSON.stringify(comparison));
    else sessionStorage.removeItem(storedName);
  } catch {
    // A browser may forbid storage: the comparison ends with a reload.
  }
}

/** Stores the two conversations of a comparison. Where the browser stores nothing, it lasts as long as the page. */
export class ComparisonStore implements Keeper {
  readonly #store = new BrowserStore(`${storeName}comparisons`);
  /** Conversations that are stored, or being stored. */
  readonly #stored = new Set<string>();
  #writes: Promise<unknown> = Promise.resolve();
  #open: readonly Conversation[] = [];
  #isLeaving = false;

  /** Called with the first write. */
  #listen(): void {
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") this.#saveAtOnce();
    });
    // Chromium breaks the connections between these two events, which is no failure of an answer.
    for (const event of ["beforeunload", "pagehide"])
      addEventListener(event, () => {
        this.#saveAtOnce();
        this.#isLeaving = true;
        setTimeout(() => (this.#isLeaving = false), stayedAfterMs);
      });
  }

  /** The conversations that are shown now. */
  set open(conversations: readonly Conversation[]) {
    this.#open = conversations;
  }

  load(id: string): Promise<StoredConversation | undefined> {
    return this.#store.load(id).then(
      (stored) => {
        if (stored && this.#stored.size === 0) this.#listen();
        if (stored) this.#stored.add(id);
        return stored;
      },
      () => undefined,
    );
  }

  keep(conversation: Conversation, ids: readonly string[]): void {
    if (this.#isLeaving || !this.#open.includes(conversation)) return;
    const { record, tree } = conversation;
    const turns = ids.flatMap((id) => tree.get(id) ?? []).map(storedTurn);
    const removed = ids.filter((id) => tree.get(id) === undefined);
    const isNew = !this.#stored.has(record.id);
    if (this.#stored.size === 0) this.#listen();
    this.#stored.add(record.id);
    this.#write(() => this.#store.save({ isNew, record, turns, removed }));
    if (isNew) this.#write(() => this.#deleteOld());
  }

  removed(): void {
    // Versions of a comparison are not offered for removal.
  }

  forget(id: string): void {
    if (this.#stored.delete(id)) this.#write(() => this.#store.delete(id));
  }

  /** One write after the other. */
  #write(write: () => Promise<unknown>): void {
    this.#writes = this.#writes.then(write).catch(() => {});
  }

  async #deleteOld(): Promise<void> {
    for (const { id, changed } of await this.#store.list())
      if (changed < Date.now() - keptMs) await this.#store.delete(id);
  }

  #saveAtOnce(): void {
    if (this.#isLeaving) return;
    for (const { id, runningTurn = "", tree } of this.#open) {
      const turn = tree.get(runningTurn);
      if (turn && this.#stored.has(id)) this.#store.saveAtOnce(id, storedTurn(turn));
    }
  }
}
