/**
 * Texts under keys of the form `OWNER NAME`. A store limits the age of its texts and, in memory or a folder, their number and total size. If
 * these are exceeded, the owner with the most texts, or bytes, loses its least recently used text. A text is stored completely or not at
 * all, even if the process crashes.
 */
export interface Store {
  /** Rejects if the store cannot be reached. */
  get(key: string): Promise<string | undefined>;
  /** Resolves when the text is stored, durably if the store outlives the process. */
  set(key: string, text: string): Promise<void>;
  /** Resolves to whether the text existed. */
  delete(key: string): Promise<boolean>;
  close(): Promise<void>;
}

export interface StoreLimits {
  /** The maximum number of texts. */
  readonly maxCount: number;
  /** The maximum total size, in bytes of UTF-8. */
  readonly maxBytes: number;
  /** How long a text is kept, in milliseconds. */
  readonly maxAgeMs: number;
}

/** The owner in a key; "" if there is none. */
export function ownerOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf(" ")));
}
