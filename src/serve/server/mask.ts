import type { Log } from "./log.ts";

/** Replaces a secret. */
const masked = "[key]";
/** Shorter secrets, such as `local` or `none`, would be found in ordinary text. */
const minLength = 8;

/** Removes the secrets of the configuration from errors, headers, logs and records: a source may repeat its key in an error. */
export class Mask {
  readonly #secrets: readonly string[];

  /** Ignores secrets of fewer than 8 characters. */
  constructor(secrets: readonly string[]) {
    // The longest first, because one secret may contain another.
    this.#secrets = [...new Set(secrets)]
      .filter(({ length }) => length >= minLength)
      .sort((a, b) => b.length - a.length);
  }

  /** The mask with a further secret. */
  with(secret: string): Mask {
    return new Mask([...this.#secrets, secret]);
  }

  get isEmpty(): boolean {
    return this.#secrets.length === 0;
  }

  text(text: string): string {
    let shown = text;
    for (const secret of this.#secrets) if (shown.includes(secret)) shown = shown.replaceAll(secret, masked);
    return shown;
  }

  /** Masks every text in a value. A value without secrets is returned unchanged. */
  value<T>(value: T): T {
    if (this.isEmpty) return value;
    if (typeof value === "string") return this.text(value) as T;
    if (typeof value !== "object" || value === null) return value;
    if (value instanceof Error)
      return this.#contains(value.stack ?? value.message) ? (this.text(String(value.stack)) as T) : value;
    if (Array.isArray(value)) {
      const items = value.map((item: unknown) => this.value(item));
      return items.some((item, at) => item !== value[at]) ? (items as T) : value;
    }
    // Most values have no secret, and are not copied.
    let copy: Record<string, unknown> | undefined;
    for (const name of Object.keys(value)) {
      const member = (value as Readonly<Record<string, unknown>>)[name];
      const shown = this.value(member);
      if (shown !== member) (copy ??= { ...(value as object) })[name] = shown;
    }
    return copy ? (copy as T) : value;
  }

  #contains(text: string): boolean {
    return this.#secrets.some((secret) => text.includes(secret));
  }
}

type Level = Exclude<keyof Log, "isLevelEnabled">;

/** A log without secrets. `mask` is called for each line, because the configuration may be reloaded. */
export function maskedLog(log: Log, mask: () => Mask): Log {
  const line =
    (level: Level): Log[Level] =>
    (fields, message) => {
      if (log.isLevelEnabled?.(level) === false) return;
      log[level](mask().value(fields), mask().text(message));
    };
  const { isLevelEnabled } = log;
  return {
    debug: line("debug"),
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
    ...(isLevelEnabled && { isLevelEnabled: (level: string) => isLevelEnabled.call(log, level) }),
  };
}
