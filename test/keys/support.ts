import { createHash } from "node:crypto";
import type { KeyEntry } from "../../src/serve/config/keys-schema.ts";
import type { Log, LogFields } from "../../src/serve/server/log.ts";

/** A key and its entry in a configuration. */
export function keyOf(
  name: string,
  more: Partial<KeyEntry> = {},
  key = `tw-key-of-${name}-0123456789`,
): { key: string; entry: KeyEntry } {
  return { key, entry: { name, hash: `sha256:${createHash("sha256").update(key).digest("hex")}`, ...more } };
}

/** A request with a key. */
export function withKey(key: string, init: RequestInit = {}): RequestInit {
  return { ...init, headers: { ...(init.headers as Record<string, string>), authorization: `Bearer ${key}` } };
}

/** A log that keeps its lines. */
export function recordingLog(): { log: Log; lines: (LogFields & { message: string })[] } {
  const lines: (LogFields & { message: string })[] = [];
  const write = (fields: LogFields, message: string): void => void lines.push({ ...fields, message });
  return { log: { debug: () => {}, info: write, warn: write, error: write }, lines };
}
