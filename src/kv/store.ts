/**
 * Texts under keys, which begin with their owner and a space: `OWNER NAME`. A store is bounded: by the age of what it keeps and, where it
 * is memory or a folder, by its number and size. When these are exceeded, the owner that has most gives way; of its texts, the one that
 * was not asked for longest goes first. What was set is whole or not there, whatever happens meanwhile.
 */
export interface Store {
  /** Rejects where the store cannot be reached. */
  get(key: string): Promise<string | undefined>;
  /** Resolves when the text will be found, after a restart, too, where the store outlives one. */
  set(key: string, text: string): Promise<void>;
  /** Resolves to whether there was something. */
  delete(key: string): Promise<boolean>;
  close(): Promise<void>;
}

export interface StoreLimits {
  /** The most texts, */
  readonly maxCount: number;
  /** the most bytes of UTF-8, all texts together, */
  readonly maxBytes: number;
  /** and how long one is kept, in milliseconds. */
  readonly maxAgeMs: number;
}

/** The owner of a key; "" where the key names none. */
export function ownerOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf(" ")));
}
