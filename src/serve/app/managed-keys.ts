import { FailureError, invalidRequest, loggedError } from "../../wire/core/failure.ts";
import { ConfigError } from "../config/config-error.ts";
import { parseKeys } from "../config/keys-schema.ts";
import type { KeyEntry } from "../config/keys-schema.ts";
import type { Store } from "../kv/store.ts";
import { keyId } from "../server/admin/key-control.ts";
import type { KeyControl, ShownKey } from "../server/admin/key-control.ts";
import { hashOf } from "../server/keys/key-ring.ts";
import type { HashedKey, LaterKeys } from "../server/keys/key-ring.ts";
import type { Log } from "../server/log.ts";
import { hashedKey } from "./settings-of-config.ts";

const logKey = "keys log";
/** How often what other instances have changed is looked for, in milliseconds. For an unknown key, the log is read immediately. */
const lookEveryMs = 1000;

/** A line of the log: a key as it is from then on, or the hash of one that was revoked. */
type Change = { readonly key: StoredEntry } | { readonly revoked: string };
type StoredEntry = KeyEntry & { readonly created: string };

/** A new key: 256 random bits cannot be found from their hash, so the hash needs no salt and no slow function. */
export async function makeKey(): Promise<{ readonly key: string; readonly hash: string }> {
  const bits = String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32)));
  const key = `tw-${btoa(bits).replaceAll("+", "-").replaceAll("/", "_").replace("=", "")}`;
  return { key, hash: await hashOf(key) };
}

/**
 * Keys that are created while the server runs: a log of changes in the store, which all instances read. They are known by their hashes. A
 * key that is in the configuration, too, is as the configuration has it.
 */
export class ManagedKeys implements LaterKeys, KeyControl {
  readonly #warn: Log["warn"];
  #store: Store | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  readonly #entries = new Map<string, StoredEntry>();
  readonly #keys = new Map<string, HashedKey>();
  /** Bytes of the lines of the log that were read. */
  #size = 0;
  #reading: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #isAway = false;

  constructor(warn: Log["warn"]) {
    this.#warn = warn;
  }

  /** Rejects if the store cannot be read. */
  async open(store: Store): Promise<void> {
    this.#store = store;
    await this.#read();
    this.#timer = setInterval(() => void this.refresh(), lookEveryMs);
    // The timer of a handler must not keep its process running.
    (this.#timer as { unref?: () => void }).unref?.();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#reading;
    await this.#store?.close();
  }

  find(hash: string): HashedKey | undefined {
    return this.#keys.get(hash);
  }

  list(): Iterable<HashedKey> {
    return this.#keys.values();
  }

  /** Resolves when what was stored before this call is read. While the store cannot be reached, the known keys stay valid. Never rejects. */
  refresh(): Promise<void> {
    if (this.#reading) return (this.#next ??= this.#reading.then(() => ((this.#next = undefined), this.refresh())));
    this.#reading = this.#read()
      .then(
        () => {
          if (this.#isAway) this.#warn({}, "the store of keys is back");
          this.#isAway = false;
        },
        (error: unknown) => {
          if (!this.#isAway) this.#warn({ cause: loggedError(error) }, "the store of keys cannot be reached");
          this.#isAway = true;
        },
      )
      .finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async create(settings: object): Promise<{ readonly key: string; readonly entry: ShownKey }> {
    requireSettable(settings);
    const { key, hash } = await makeKey();
    const entry = await this.#set({ ...settings, hash: `sha256:${hash}`, created: new Date().toISOString() });
    return { key, entry };
  }

  async change(id: string, settings: object): Promise<ShownKey> {
    requireSettable(settings);
    const { hash, created, ...before } = await this.#found(id);
    const after = Object.entries({ ...before, ...settings }).filter(([, value]) => value !== null);
    return this.#set({ ...Object.fromEntries(after), hash, created });
  }

  async revoke(id: string): Promise<ShownKey> {
    const entry = await this.#found(id);
    await this.#append({ revoked: hashIn(entry) });
    return shownEntry(entry);
  }

  shown({ hash }: HashedKey): ShownKey | undefined {
    const entry = this.#entries.get(hash);
    return entry && shownEntry(entry);
  }

  async #found(id: string): Promise<StoredEntry> {
    await this.refresh();
    for (const [hash, entry] of this.#entries) if (keyId(hash) === id) return entry;
    throw new FailureError({
      message: `No key that was created while the server runs has the id '${id}'. GET /admin/keys lists them; others are in the configuration.`,
      status: 404,
      kind: "not-found",
    });
  }

  async #set(settings: Readonly<Record<string, unknown>>): Promise<ShownKey> {
    const { created, ...own } = settings;
    const entry = { ...own, created } as unknown as StoredEntry;
    try {
      parseKeys([own]);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const [problem] = error.problems;
      const path = problem?.path.slice(1).join(".") ?? "";
      throw invalidRequest(`Invalid '${path}': ${problem?.message}.`, path);
    }
    await this.#append({ key: entry });
    return shownEntry(entry);
  }

  /** Resolves when the change is stored, and holds here. */
  async #append(change: Change): Promise<void> {
    // A line that a crash has torn ends where the next one begins.
    await this.#store?.append(logKey, `\n${JSON.stringify(change)}\n`, true);
    await this.refresh();
  }

  async #read(): Promise<void> {
    const end = await this.#store?.readFrom(logKey, this.#size);
    if (!end) return;
    // The last line may not have been written completely.
    const whole = end.text.slice(0, end.text.lastIndexOf("\n") + 1);
    this.#size += new TextEncoder().encode(whole).length;
    for (const line of whole.split("\n")) if (line !== "") this.#apply(line);
  }

  #apply(line: string): void {
    try {
      const change = JSON.parse(line) as Change;
      if ("revoked" in change) {
        this.#entries.delete(change.revoked);
        this.#keys.delete(change.revoked);
        return;
      }
      const { created: _, ...entry } = change.key;
      for (const config of parseKeys([entry])) {
        this.#entries.set(config.hash, change.key);
        this.#keys.set(config.hash, hashedKey(config));
      }
    } catch (error) {
      this.#warn({ cause: loggedError(error) }, "a line of the log of keys cannot be read");
    }
  }
}

/** Throws `FailureError` for what the server sets itself. */
function requireSettable(settings: object): void {
  const own = ["hash", "created"].find((member) => member in settings);
  if (own !== undefined) throw invalidRequest(`Invalid '${own}': it is set by the server.`, own);
}

function hashIn({ hash }: StoredEntry): string {
  return hash.slice("sha256:".length);
}

function shownEntry(entry: StoredEntry): ShownKey {
  const { hash: _, ...shown } = entry;
  return { id: keyId(hashIn(entry)), ...shown };
}
