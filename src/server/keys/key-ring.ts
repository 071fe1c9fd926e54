import { expiredKey, incorrectApiKey, missingApiKey, missingOwnKey, unknownOwnKey } from "../../apis/failures.ts";
import type { Profile } from "../../apis/profile.ts";
import type { Limits } from "../../kv/limits.ts";

/** A key that is known by its hash. */
export interface HashedKey {
  /** SHA-256 in lower-case hexadecimal digits. */
  readonly hash: string;
  readonly client: Client;
  /** Unix time in milliseconds; from then on the key is none. */
  readonly expiresAt?: number;
}

/**
 * The keys that clients may use, by their SHA-256 hashes; the keys themselves are not kept. A key is found by its hash: how long that
 * takes tells something of the hash at most, which nobody can choose without knowing the key.
 */
export class KeyRing {
  readonly #keys: Promise<ReadonlyMap<string, HashedKey>>;
  /** Without keys, everybody may call. */
  readonly required: boolean;

  /**
   * `plain`: keys in plain text, which have no limits. A key in both lists keeps the limits of its entry in `hashed`. `required`: clients
   * need a key even if both lists are empty.
   */
  constructor(plain: readonly string[], hashed: readonly HashedKey[], required: boolean) {
    this.required = required || plain.length + hashed.length > 0;
    this.#keys = ringOf(plain, hashed);
  }

  /** Who holds a key ("": none); undefined: nobody. */
  async find(key: string): Promise<Client | undefined> {
    const found = key === "" ? undefined : await this.#find(key);
    return found && !hasExpired(found) ? found.client : undefined;
  }

  /** The same; throws `FailureError` 401 where nobody holds it. */
  async check(key: string, profile: Profile): Promise<Client> {
    const own = !profile.judgesAsVendor;
    if (key === "") throw own ? missingOwnKey() : missingApiKey();
    const found = await this.#find(key);
    if (found && !hasExpired(found)) return found.client;
    if (found && own) throw expiredKey(found.client.name ?? "");
    throw own ? unknownOwnKey(key) : incorrectApiKey(key);
  }

  async #find(key: string): Promise<HashedKey | undefined> {
    const [hash, keys] = await Promise.all([hashOf(key), this.#keys]);
    return keys.get(hash);
  }
}

async function ringOf(plain: readonly string[], hashed: readonly HashedKey[]): Promise<ReadonlyMap<string, HashedKey>> {
  const hashes = await Promise.all(plain.map((key) => hashOf(key)));
  const unlimited = hashes.map((hash, at): HashedKey => ({ hash, client: { owner: `key ${at + 1}` } }));
  // The later entry of a hash is used: the one with limits and an expiry date.
  return new Map([...unlimited, ...hashed].map((key) => [key.hash, key]));
}

function hasExpired({ expiresAt = Infinity }: HashedKey): boolean {
  return Date.now() >= expiresAt;
}

/** Who holds a key, as far as the server knows. */
export interface Client {
  /** As configured; absent for a key without a name. Whoever holds several keys has one name. */
  readonly name?: string;
  /** Whose requests these are, for engines that share what they have between clients; not the key. */
  readonly owner: string;
  /** Names of models, as clients use them, with `*` for any text; absent: all. */
  readonly models?: readonly string[];
  /** Absent: it has none. */
  readonly limits?: Limits;
}

/** SHA-256 of a text, in lower-case hexadecimal digits. */
export async function hashOf(text: string): Promise<string> {
  let digits = "";
  for (const byte of new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))))
    digits += byte.toString(16).padStart(2, "0");
  return digits;
}
