import type { Limiter } from "./limits.ts";
import { MemoryLimiter } from "./memory-limiter.ts";
import { MemoryStore } from "./memory-store.ts";
import type { Store, StoreLimits } from "./store.ts";

export { sharedValue } from "./shared-value.ts";

/**
 * Opens a store: `memory`, `redis://…` (or `rediss://…`), or a folder. `warn` is called with a line when a problem occurs later. Rejects if
 * the store cannot be opened.
 */
export async function openStore(place: string, limits: StoreLimits, warn: (line: string) => void): Promise<Store> {
  if (place === "memory") return new MemoryStore(limits);
  if (isRedis(place)) {
    const { openRedisStore } = await import("./redis-store.ts");
    return openRedisStore(place, limits, warn);
  }
  const { openFolderStore } = await import("./folder-store.ts");
  return openFolderStore(place, limits);
}

/**
 * Returns the secret that is kept in Redis, or in a file, for all processes that name the same place. `fresh` becomes the secret if there is
 * none. Rejects if the place cannot be read or written.
 */
export async function openSecret(place: string, fresh: string): Promise<string> {
  if (isRedis(place)) {
    const { openRedisSecret } = await import("./redis-store.ts");
    return openRedisSecret(place, "session-key", fresh);
  }
  const { openSecretFile } = await import("./secret-file.ts");
  return openSecretFile(place, fresh);
}

function isRedis(place: string): boolean {
  return /^rediss?:\/\//.test(place);
}

/** Opens a limiter: in Redis (`redis://…`, `rediss://…`), or in this process. `warn` is called with a line when a problem occurs. */
export async function openLimiter(url: string | undefined, warn: (line: string) => void): Promise<Limiter> {
  if (url === undefined) return new MemoryLimiter();
  const { openRedisLimiter } = await import("./redis-limiter.ts");
  return openRedisLimiter(url, warn);
}
