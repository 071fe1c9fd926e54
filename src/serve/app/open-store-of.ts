import { ConfigError } from "../config/config-error.ts";
import type { Config } from "../config/schema.ts";
import type { Log } from "../server/log.ts";
import { MemoryStore } from "../kv/memory-store.ts";
import type { Limiter } from "../kv/limits.ts";
import { MemoryLimiter } from "../kv/memory-limiter.ts";
import type { Store } from "../kv/store.ts";
import type { FileStore } from "../server/client-stores.ts";
import type { TurnLimits } from "../server/stored-turns.ts";
import type { Runtime } from "./runtime.ts";

/** A placeholder until the store is open: a server that loads its models takes no requests. */
export const noStore: Store = new MemoryStore({ maxCount: 0, maxBytes: 0, maxAgeMs: 0 });

/** Opens the store of a configuration. Throws `ConfigError` if it cannot be opened. */
export async function openStoreOf({ store }: Config, log: Log, runtime: Runtime): Promise<Store> {
  const { at, maxCount, maxSize, maxAge } = store;
  const limits = { maxCount, maxBytes: maxSize, maxAgeMs: maxAge };
  if (at === "memory") return new MemoryStore(limits);
  try {
    const { openStore } = await runtime.stores();
    return await openStore(at, limits, (line) => log.warn({}, line));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError([{ path: ["store", "at"], message: `cannot be opened: ${reason}` }]);
  }
}

/**
 * Opens the store of turns (`sessions`), which is in the same place as the store of responses, with limits of its own. Undefined: turns are
 * kept in the memory of one process. Rejects if it cannot be opened.
 */
export async function openTurnStoreOf(config: Config, runtime: Runtime): Promise<Store | undefined> {
  const { at } = config.store;
  if (at === "memory" || !config.sessions.memory) return undefined;
  const { openStore } = await runtime.stores();
  // Where Redis is lost, the store of responses says so.
  return openStore(at.includes("://") ? at : `${at}/turns`, turnLimitsOf(config), () => {});
}

/**
 * Opens the store of files and batches, which is in the same place as the store of responses, with limits of its own. Undefined: files are
 * off. With several workers they are, unless all share Redis. Rejects if it cannot be opened.
 */
export async function openFileStoreOf(
  { store: { at }, files, workers }: Config,
  log: Log,
  runtime: Runtime,
): Promise<FileStore | undefined> {
  const isRedis = at.includes("://");
  if (files.maxCount === 0 || (workers > 1 && !isRedis)) return undefined;
  const limits = { maxCount: files.maxCount * textsPerFile, maxBytes: files.maxSize, maxAgeMs: files.maxAge };
  const opened = { maxBytes: isRedis ? Infinity : files.maxSize, maxAgeMs: files.maxAge };
  if (at === "memory") return { ...opened, store: new MemoryStore(limits) };
  const { openStore } = await runtime.stores();
  return { ...opened, store: await openStore(isRedis ? at : `${at}/files`, limits, (line) => log.warn({}, line)) };
}

/** Its facts and its content. Lists and batches are few. */
const textsPerFile = 2;

export function turnLimitsOf({ sessions: { maxCount, maxSize, maxTurn, maxAge } }: Config): TurnLimits {
  return { maxCount, maxBytes: maxSize, maxTurnBytes: maxTurn, maxAgeMs: maxAge };
}

/** Opens the store of managed keys, which is in the same place as the store of responses; no key is evicted. Rejects as `openStoreOf`. */
export async function openKeyStoreOf({ store: { at } }: Config, log: Log, runtime: Runtime): Promise<Store> {
  const warn = (line: string): void => log.warn({}, line);
  if (at === "memory") {
    warn("keys that are created end with this server: set a store (store: ./truewire-store, or redis://HOST:PORT)");
    return new MemoryStore(forever);
  }
  const { openStore } = await runtime.stores();
  return openStore(at.includes("://") ? at : `${at}/keys`, forever, warn);
}

/** A hundred years: Redis has no longer age. */
const forever = { maxCount: Infinity, maxBytes: Infinity, maxAgeMs: 36_500 * 86_400_000 };

/**
 * Opens the limiter of a configuration: in Redis, or in this process; what is spent is then kept next to a store in a folder. Rejects if the
 * folder cannot be read.
 */
export async function openLimiterOf(
  { sharedLimits, store: { at } }: Config,
  log: Log,
  runtime: Runtime,
): Promise<Limiter> {
  const isFolder = at !== "memory" && !at.includes("://");
  if (sharedLimits === undefined && !isFolder) return new MemoryLimiter();
  const { openLimiter, openStore } = await runtime.stores();
  const warn = (line: string): void => log.warn({}, line);
  if (sharedLimits !== undefined) return openLimiter(sharedLimits, warn);
  return MemoryLimiter.keptIn(await openStore(`${at}/usage`, forever, warn), warn);
}
