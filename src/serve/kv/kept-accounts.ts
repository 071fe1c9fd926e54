import type { Store } from "./store.ts";

const namesKey = "usage names";
const ownerKey = "usage owner";

/**
 * The accounts of names in a store, a text for each. A write stores what is counted when it begins; changes during a write are stored
 * together by the next one. One process writes at a time: the one that opened the store last.
 */
export class KeptAccounts {
  readonly #store: Store;
  readonly #warn: (line: string) => void;
  readonly #own = crypto.randomUUID();
  readonly #names: Set<string>;
  readonly #writes = new Map<string, { running: Promise<void>; next?: Promise<void> | undefined }>();
  #isLost = false;
  #hasFailed = false;

  private constructor(store: Store, names: Iterable<string>, warn: (line: string) => void) {
    this.#store = store;
    this.#names = new Set(names);
    this.#warn = warn;
  }

  /** `onAccount` is called with each account that is stored. Rejects if the store cannot be read. */
  static async open(
    store: Store,
    onAccount: (name: string, text: string) => void,
    warn: (line: string) => void,
  ): Promise<KeptAccounts> {
    // A line that a crash tore is no name.
    const lines = ((await store.get(namesKey)) ?? "").split("\n").filter((line) => line.endsWith('"'));
    const kept = new KeptAccounts(
      store,
      lines.map((line) => JSON.parse(line) as string),
      warn,
    );
    await store.set(ownerKey, kept.#own);
    for (const name of kept.#names) {
      const text = await store.get(keyOf(name));
      if (text !== undefined) onAccount(name, text);
    }
    return kept;
  }

  /** Resolves when an account, as `text` returns it after this call, is stored, or could not be: then the log says so. */
  save(name: string, text: () => string): Promise<void> {
    const write = this.#writes.get(name);
    if (write) return (write.next ??= write.running.then(() => this.#begin(name, text)));
    return this.#begin(name, text);
  }

  #begin(name: string, text: () => string): Promise<void> {
    const running: Promise<void> = this.#write(name, text()).then(() => {
      const write = this.#writes.get(name);
      if (write?.running === running && !write.next) this.#writes.delete(name);
    });
    this.#writes.set(name, { running });
    return running;
  }

  async #write(name: string, text: string): Promise<void> {
    if (this.#isLost) return;
    try {
      if ((await this.#store.get(ownerKey)) !== this.#own) {
        this.#isLost = true;
        return this.#warn(
          "another process counts in this store now: what this one counts ends with it. Set sharedLimits for several instances.",
        );
      }
      if (!this.#names.has(name)) {
        await this.#store.append(namesKey, `\n${JSON.stringify(name)}`, true);
        this.#names.add(name);
      }
      await this.#store.set(keyOf(name), text);
      if (this.#hasFailed) this.#warn("the store of usage is back");
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed)
        this.#warn(
          `usage cannot be stored (${error instanceof Error ? error.message : String(error)}); it is counted in memory`,
        );
      this.#hasFailed = true;
    }
  }

  async close(): Promise<void> {
    for (let write; (write = [...this.#writes.values()][0]);) await (write.next ?? write.running);
    await this.#store.close();
  }
}

function keyOf(name: string): string {
  return `usage @${encodeURIComponent(name)}`;
}
