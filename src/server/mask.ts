import type { GenerationEvent } from "../core/events.ts";
import type { Log } from "./log.ts";

/** Replaces a secret. */
const masked = "[key]";
/** Shorter secrets, such as `local` or `none`, would be found in ordinary text. */
const minLength = 8;
/**
 * Text that ends with more than this number of a secret's first characters is held back until the next text shows whether it is the
 * secret.
 */
const maxCoincidence = 5;

/** Removes the secrets of the configuration from what is sent: a source may repeat its key in an error, or a model in its text. */
export class Mask {
  readonly #secrets: readonly string[];

  /** Ignores secrets of fewer than 8 characters. */
  constructor(secrets: readonly string[]) {
    // The longest first, because one secret may contain another.
    this.#secrets = [...new Set(secrets)]
      .filter(({ length }) => length >= minLength)
      .sort((a, b) => b.length - a.length);
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

  /** Masks a text that arrives in chunks: a secret may be split anywhere. */
  stream(): MaskedText {
    return new MaskedText(this.#secrets);
  }

  #contains(text: string): boolean {
    return this.#secrets.some((secret) => text.includes(secret));
  }
}

/** Masks a text that arrives in chunks. At most five characters of a split secret are returned before it is recognized. */
export class MaskedText {
  readonly #secrets: readonly string[];
  /** The end of the text so far; its first `#sent` characters have been returned. */
  #tail = "";
  #sent = 0;

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
  }

  /** Adds a chunk; returns the text that may be sent. */
  push(chunk: string): string {
    this.#tail += chunk;
    let out = "";
    for (let found = this.#firstSecret(); found; found = this.#firstSecret()) {
      out += this.#tail.slice(this.#sent, Math.max(found.at, this.#sent)) + masked;
      this.#tail = this.#tail.slice(found.at + found.length);
      this.#sent = 0;
    }
    const beginning = this.#partialSecretLength();
    const free = Math.max(this.#sent, this.#tail.length - (beginning > maxCoincidence ? beginning : 0));
    out += this.#tail.slice(this.#sent, free);
    const kept = this.#tail.length - Math.max(beginning, this.#tail.length - free);
    this.#tail = this.#tail.slice(kept);
    this.#sent = free - kept;
    return out;
  }

  /** Ends the text; returns what was held back. */
  end(): string {
    const rest = this.#tail.slice(this.#sent);
    this.#tail = "";
    this.#sent = 0;
    return rest;
  }

  #firstSecret(): { readonly at: number; readonly length: number } | undefined {
    let first: { at: number; length: number } | undefined;
    for (const { length, at } of this.#secrets.map((secret) => ({
      length: secret.length,
      at: this.#tail.indexOf(secret),
    }))) {
      if (at !== -1 && (first === undefined || at < first.at)) first = { at, length };
    }
    return first;
  }

  /** The length of the longest beginning of a secret with which the text ends. */
  #partialSecretLength(): number {
    let longest = 0;
    for (const secret of this.#secrets) {
      for (let length = Math.min(secret.length - 1, this.#tail.length); length > longest; length--) {
        if (this.#tail.endsWith(secret.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}

/** Masks the events of one generation, including secrets that are split over several events. */
export class MaskedEvents {
  readonly #mask: Mask;
  /** The open text of each choice: within a choice, texts are consecutive. */
  readonly #texts = new Map<number, OpenText>();

  constructor(mask: Mask) {
    this.#mask = mask;
  }

  /** Returns the events that may be sent; none if all of the batch is held back. */
  read(events: readonly GenerationEvent[]): readonly GenerationEvent[] {
    const out: GenerationEvent[] = [];
    for (const event of events) this.#readOne(event, out);
    return out;
  }

  #readOne(event: GenerationEvent, out: GenerationEvent[]): void {
    // These may occur between the deltas of a text, and do not end it.
    if (event.type === "tokens" || event.type === "prompt" || event.type === "progress") {
      out.push(this.#mask.value(event));
      return;
    }
    const key = textKey(event);
    if (key === null || !("choice" in event) || event.choice === undefined) {
      if ("choice" in event && event.choice !== undefined) this.#flush(event.choice, out);
      else for (const choice of this.#texts.keys()) this.#flush(choice, out);
      out.push(this.#mask.value(event));
      return;
    }
    let text = this.#texts.get(event.choice);
    if (text?.key !== key) {
      this.#flush(event.choice, out);
      this.#texts.set(event.choice, (text = { key, masked: this.#mask.stream(), last: event }));
    }
    text.last = event;
    const before = textOf(event);
    const shown = text.masked.push(before);
    if (shown === before) out.push(event);
    else if (shown !== "") out.push(withText(event, shown));
  }

  /** Ends the open text of a choice, and emits what was held back. */
  #flush(choice: number, out: GenerationEvent[]): void {
    const text = this.#texts.get(choice);
    if (!text) return;
    const rest = text.masked.end();
    if (rest !== "") out.push(withText(text.last, rest));
    this.#texts.delete(choice);
  }
}

interface OpenText {
  /** The type of its events, with the index of the tool call or of the summary part. */
  readonly key: string;
  readonly masked: MaskedText;
  last: GenerationEvent;
}

function textKey(event: GenerationEvent): string | null {
  switch (event.type) {
    case "text-delta":
    case "refusal-delta":
      return event.type;
    case "reasoning-delta":
      return `${event.type} ${event.summary ?? ""}`;
    case "tool-call-delta":
      return `${event.type} ${event.index}`;
    default:
      return null;
  }
}

function textOf(event: GenerationEvent): string {
  if (event.type === "tool-call-delta") return event.arguments;
  return "text" in event ? event.text : "";
}

/** The event with another text. Logprobs are removed: they contain the original text. */
function withText(event: GenerationEvent, text: string): GenerationEvent {
  if (event.type === "tool-call-delta") return { ...event, arguments: text };
  if (!("text" in event)) return event;
  const { logprobs: _, ...rest } = { logprobs: undefined, ...event };
  return { ...rest, text } as GenerationEvent;
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
