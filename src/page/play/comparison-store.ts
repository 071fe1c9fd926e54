import type { Conversation, Keeper } from "./conversation.ts";
import { ConversationSaver } from "./conversation-saver.ts";
import { storeName } from "./conversation-store.ts";
import type { StoredConversation } from "./conversation-store.ts";

/** In the storage of the tab: its comparison, which a reload does not end. */
const storedName = "truewire.comparison";

/** How long comparisons of closed tabs are kept, in milliseconds. */
const keptMs = 7 * 24 * 60 * 60 * 1000;

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
  readonly #open = new Map<string, Conversation>();
  readonly #saver = new ConversationSaver(`${storeName}comparisons`, { open: this.#open });
  #isCleaned = false;

  /** The conversations that are shown now. */
  set open(conversations: readonly Conversation[]) {
    this.#open.clear();
    for (const conversation of conversations) this.#open.set(conversation.id, conversation);
  }

  load(id: string): Promise<StoredConversation | undefined> {
    return this.#saver.load(id);
  }

  keep(conversation: Conversation, ids: readonly string[]): void {
    if (this.#open.get(conversation.id) !== conversation) return;
    void this.#saver.save(conversation, ids);
    if (!this.#isCleaned) void this.#deleteOld();
    this.#isCleaned = true;
  }

  removed(): void {
    // Versions of a comparison are not offered for removal.
  }

  forget(id: string): void {
    this.#saver.forget(id);
    this.#saver.delete(id).catch(() => {});
  }

  async #deleteOld(): Promise<void> {
    for (const { id, changed } of await this.#saver.list())
      if (changed < Date.now() - keptMs) await this.#saver.delete(id).catch(() => {});
  }
}
