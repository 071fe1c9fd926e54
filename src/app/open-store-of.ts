import { ConfigError } from "../config/config-error.ts";
import type { Config } from "../config/schema.ts";
import type { Log } from "../server/log.ts";
import { MemoryStore } from "../kv/memory-store.ts";
import { openStore } from "../kv/open.ts";
import type { Store } from "../kv/store.ts";

/** A placeholder until the store is open: a server that loads its models takes no requests. */
export const noStore: Store = new MemoryStore({ maxCount: 0, maxBytes: 0, maxAgeMs: 0 });

/** Opens the store of a configuration. Throws `ConfigError` if it cannot be opened. */
export async function openStoreOf({ store }: Config, log: Log): Promise<Store> {
  const { at, maxCount, maxSize, maxAge } = store;
  try {
    return await openStore(at, { maxCount, maxBytes: maxSize, maxAgeMs: maxAge }, (line) => log.warn({}, line));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError([{ path: ["store", "at"], message: `cannot be opened: ${reason}` }]);
  }
}
