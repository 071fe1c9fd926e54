import { incorrectApiKey, missingApiKey, missingOwnKey, unknownOwnKey } from "../wire/failures.ts";
import type { Profile } from "../wire/profile.ts";

/**
 * The keys that clients may use. Only their SHA-256 hashes are kept, and every check compares the given key's hash with all of them, in
 * a time that does not depend on where they differ.
 */
export class ApiKeys {
  readonly #hashes: Promise<Uint8Array[]>;
  readonly #count: number;

  /** Without keys, everybody may call. */
  constructor(keys: readonly string[]) {
    this.#count = keys.length;
    this.#hashes = Promise.all(keys.map((key) => sha256(key)));
  }

  get required(): boolean {
    return this.#count > 0;
  }

  /** Whether a client with this key may enter; "": it has none. */
  async admits(key: string): Promise<boolean> {
    if (!this.required) return true;
    if (key === "") return false;
    const given = await sha256(key);
    let known = false;
    for (const hash of await this.#hashes) known = equal(hash, given) || known;
    return known;
  }

  /** Throws `FailureError` 401 when there is no key (""), or a wrong one. */
  async check(key: string, profile: Profile): Promise<void> {
    if (await this.admits(key)) return;
    if (profile.judgesAsVendor) throw key === "" ? missingApiKey() : incorrectApiKey(key);
    throw key === "" ? missingOwnKey() : unknownOwnKey(key);
  }
}

/** SHA-256 of a text. */
export async function sha256(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length;
  for (let at = 0; at < a.length; at++) difference |= (a[at] ?? 0) ^ (b[at] ?? 0);
  return difference === 0;
}
