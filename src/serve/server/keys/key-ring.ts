import {
  expiredKey,
  incorrectApiKey,
  missingApiKey,
  missingOwnKey,
  unknownOwnKey,
} from "../../../wire/apis/failures.ts";
import type { QueueTier } from "../../../wire/core/request.ts";
import type { Profile } from "../../../wire/apis/profile.ts";
import type { UsageLimits } from "../../kv/limits.ts";

/** A key, by its hash. */
export interface HashedKey {
  /** SHA-256 in lower-case hexadecimal digits. */
  readonly hash: string;
  readonly client: Client;
  /** When the key expires, in Unix time in milliseconds. */
  readonly expiresAt?: number;
}

/** Keys that come and go while the server runs. */
export interface LaterKeys {
  find(hash: string): HashedKey | undefined;
  list(): Iterable<HashedKey>;
  /** Looks for what other instances have changed. Never rejects. */
  refresh(): Promise<void>;
}

/**
 * The keys of clients, by their SHA-256 hashes; the keys themselves are not kept. Finding a key by its hash is not a timing side channel:
 * the time depends on the hash at most, which an attacker cannot choose.
 */
export class KeyRing {
  readonly #keys: Promise<ReadonlyMap<string, HashedKey>>;
  /** If false, requests need no key. */
  readonly required: boolean;
  readonly #later: LaterKeys | undefined;

  /**
   * `plain`: keys in plain text, which have no limits. A key in both lists keeps the limits of its entry in `hashed`. `required`: clients
   * need a key even if both lists are empty. `later`: further keys; one that is in a list, too, is as the list has it.
   */
  constructor(plain: readonly string[], hashed: readonly HashedKey[], required: boolean, later?: LaterKeys) {
    this.#later = later;
    this.required = required || plain.length + hashed.length > 0;
    this.#keys = ringOf(plain, hashed);
  }

  /** The client of a key ("": no key); undefined if there is none. */
  async find(key: string): Promise<Client | undefined> {
    const found = key === "" ? undefined : await this.#find(key);
    return found && !hasExpired(found) ? found.client : undefined;
  }

  /** The client of a key. Throws `FailureError` 401 if there is none. */
  async check(key: string, profile: Profile): Promise<Client> {
    const own = !profile.judgesAsVendor;
    if (key === "") throw own ? missingOwnKey() : missingApiKey();
    const found = await this.#find(key);
    if (found && !hasExpired(found)) return found.client;
    if (found && own) throw expiredKey(found.client.name ?? "");
    throw own ? unknownOwnKey(key) : incorrectApiKey(key);
  }

  /** The client whose texts are stored under `owner` (`storeOwnerOf`); undefined if no key of it is valid. */
  async ofStoreOwner(owner: string): Promise<Client | undefined> {
    const keys = await this.#keys;
    const ofHash = keys.get(owner);
    const all = [...keys.values(), ...(this.#later?.list() ?? [])];
    const found = (ofHash ? [ofHash] : all).find(
      (key) =>
        !hasExpired(key) &&
        owner === (key.client.name === undefined ? key.hash : `@${encodeURIComponent(key.client.name)}`),
    );
    return found?.client;
  }

  /** All keys but those in plain text. */
  async list(): Promise<readonly HashedKey[]> {
    const keys = await this.#keys;
    const later = [...(this.#later?.list() ?? [])].filter(({ hash }) => !keys.has(hash));
    return [...[...keys.values()].filter(({ client }) => client.name !== undefined), ...later];
  }

  async #find(key: string): Promise<HashedKey | undefined> {
    const [hash, keys] = await Promise.all([hashOf(key), this.#keys]);
    const found = keys.get(hash) ?? this.#later?.find(hash);
    if (found || !this.#later) return found;
    await this.#later.refresh();
    return this.#later.find(hash);
  }
}

async function ringOf(plain: readonly string[], hashed: readonly HashedKey[]): Promise<ReadonlyMap<string, HashedKey>> {
  const hashes = await Promise.all(plain.map((key) => hashOf(key)));
  // Not by its place in the list: what is kept for a key outlives the configuration.
  const unlimited = hashes.map((hash): HashedKey => ({ hash, client: { owner: `key ${hash.slice(0, 32)}` } }));
  // The later entry of a hash is used: the one with limits and an expiry date.
  return new Map([...unlimited, ...hashed].map((key) => [key.hash, key]));
}

function hasExpired({ expiresAt = Infinity }: HashedKey): boolean {
  return Date.now() >= expiresAt;
}

/** The holder of a key. */
export interface Client {
  /** As configured. Several keys may have the same name, and then belong to one client. */
  readonly name?: string;
  /** Identifies the client for engines, which share their slots fairly between owners; not the key. */
  readonly owner: string;
  /** The tier of its requests in queues, and the highest one that they may ask for; default `default`. */
  readonly tier?: QueueTier;
  /** The models that the client may use, with `*` for any text; absent: all. */
  readonly models?: readonly string[];
  /** The names of the hosted tools that the client may use, with `*` for any text; absent: all. */
  readonly hostedTools?: readonly string[];
  /** Absent: no limits. */
  readonly limits?: UsageLimits;
}

/** SHA-256 of a text, in lower-case hexadecimal digits. */
export async function hashOf(text: string): Promise<string> {
  let digits = "";
  for (const byte of new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))))
    digits += byte.toString(16).padStart(2, "0");
  return digits;
}
