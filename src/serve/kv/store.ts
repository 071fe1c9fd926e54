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
  /** Returns the text from a byte on, at which a character begins, and the size of all of it. Rejects if the store cannot be reached. */
  readFrom(key: string, from: number): Promise<TextEnd | undefined>;
  /**
   * Adds to the end of an existing text, whose age is then counted from this change. Appends of several processes do not overwrite each
   * other. Resolves to whether the text existed; if not, nothing is stored, unless `creates` is true.
   */
  append(key: string, text: string, creates?: boolean): Promise<boolean>;
  /** Resolves to whether the text existed. */
  delete(key: string): Promise<boolean>;
  close(): Promise<void>;
}

export interface TextEnd {
  readonly text: string;
  /** In bytes of UTF-8. */
  readonly size: number;
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
