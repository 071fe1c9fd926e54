import { storeName } from "./conversation-store.ts";
import { newId } from "./turn.ts";

/** The messages that tabs exchange. */
type Message =
  /** Turns were stored, changed or removed. */
  | { readonly kind: "changed"; readonly id: string; readonly turns: readonly string[] }
  | { readonly kind: "deleted"; readonly id: string }
  /** The conversations whose answers this tab receives. */
  | { readonly kind: "receiving"; readonly tab: string; readonly ids: readonly string[] }
  /** A new tab: the others answer with "receiving". */
  | { readonly kind: "hello" };

/** What this tab does when another one has changed a conversation. */
interface Listener {
  /** `turns`: ids of those that were stored, changed or removed. */
  changed(id: string, turns: readonly string[]): void;
  deleted(id: string): void;
  /** The other tab now receives the answers of these conversations, or no longer does. */
  receivingChanged(ids: readonly string[]): void;
}

/** The other tabs of this browser that show the page of this server. */
export class Tabs {
  readonly #channel = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel(storeName);
  readonly #tab = newId();
  readonly #listener: Listener;
  /** Resolves when this tab holds the lock of its id, which it keeps until it ends; immediately where the browser has no Web Locks. */
  readonly #hasLock = new Promise<void>((resolve) => {
    const held = navigator.locks?.request(lockOf(this.#tab), () => (resolve(), new Promise(() => {})));
    if (held) held.catch(resolve);
    else resolve();
  });
  /** Conversations whose answers this tab receives. */
  #own: readonly string[] = [];
  /** Tab → conversations whose answers it receives. */
  readonly #receiving = new Map<string, ReadonlySet<string>>();

  constructor(listener: Listener) {
    this.#listener = listener;
  }

  /** Begins to listen, and asks the other tabs what they receive. */
  start(): void {
    this.#channel?.addEventListener("message", ({ data }: MessageEvent<Message>) => this.#onMessage(data));
    addEventListener("pagehide", () => this.#send({ kind: "receiving", tab: this.#tab, ids: [] }));
    this.#send({ kind: "hello" });
  }

  /** Whether another tab receives an answer of a conversation. */
  receives(id: string): boolean {
    return [...this.#receiving.values()].some((ids) => ids.has(id));
  }

  /** Sends the ids of the conversations whose answers this tab receives. Returns false if they are those that were sent last. */
  sendReceiving(ids: readonly string[]): boolean {
    if (ids.join() === this.#own.join()) return false;
    this.#own = ids;
    this.#sendOwn();
    return true;
  }

  sendChanged(id: string, turns: readonly string[]): void {
    this.#send({ kind: "changed", id, turns });
  }

  sendDeleted(id: string): void {
    this.#send({ kind: "deleted", id });
  }

  #send(message: Message): void {
    this.#channel?.postMessage(message);
  }

  #sendOwn(): void {
    // A tab that hears of this one waits for its lock, so this tab must have it first.
    const ids = this.#own;
    void this.#hasLock.then(() => this.#send({ kind: "receiving", tab: this.#tab, ids }));
  }

  #onMessage(message: Message): void {
    switch (message.kind) {
      case "hello":
        return this.#sendOwn();
      case "deleted":
        return this.#listener.deleted(message.id);
      case "receiving":
        if (!this.#receiving.has(message.tab)) this.#awaitEnd(message.tab);
        return this.#setReceiving(message.tab, message.ids);
      case "changed":
        return this.#listener.changed(message.id, message.turns);
    }
  }

  #setReceiving(tab: string, ids: readonly string[]): void {
    const [known, now] = [this.#receiving.get(tab) ?? new Set<string>(), new Set(ids)];
    this.#receiving.set(tab, now);
    const all = new Set([...known, ...now]);
    this.#listener.receivingChanged([...all].filter((id) => known.has(id) !== now.has(id)));
  }

  /**
   * Waits until another tab has ended. A tab that crashes sends no message, but the browser releases its lock. Web Locks exist only in secure
   * contexts (HTTPS, or this machine); elsewhere, the answer of a tab that has crashed stays marked until the page is reloaded.
   */
  #awaitEnd(tab: string): void {
    void navigator.locks?.request(lockOf(tab), { mode: "shared" }, () => {
      this.#setReceiving(tab, []);
      this.#receiving.delete(tab);
    });
  }
}

function lockOf(tab: string): string {
  return `${storeName}tab/${tab}`;
}
