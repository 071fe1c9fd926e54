import type { KeyConfig } from "../config/keys-schema.ts";
import type { Config } from "../config/schema.ts";
import { KeyRing } from "../server/keys/key-ring.ts";
import type { HashedKey } from "../server/keys/key-ring.ts";

/** The keys of a configuration; `keys`: those with hashes. Whoever names a file of keys wants keys, even while it has none. */
export function keyRingOf({ apiKey, keysFile }: Config, keys: readonly KeyConfig[]): KeyRing {
  return new KeyRing(apiKey, keys.map(hashedKey), keysFile !== undefined);
}

function hashedKey({ name, hash, models, expires, ...limits }: KeyConfig): HashedKey {
  const isLimited = Object.values(limits).some((limit) => limit !== undefined);
  return {
    hash,
    ...(expires !== undefined && { expiresAt: expires }),
    client: { name, owner: name, ...(models && { models }), ...(isLimited && { limits }) },
  };
}
