import type { GenerationEvent } from "../core/events.ts";
import type { Log } from "./log.ts";

/** What stands in the place of a secret. */
const masked = "[key]";
/** Shorter ones would be found in any text: `local`, `none`. */
const shortest = 8;
/** So much of a secret's beginning may be a coincidence; only with more of it is a text held back to see how it goes on. */
const coincidence = 5;

/** Keeps configured secrets out of what goes out: a source may repeat its key in an error, or a model in its text. */
export class Mask {
  readonly #secrets: readonly string[];

  /** Secrets of fewer than 8 characters are not looked for. */
  constructor(secrets: readonly string[]) {
    // The longest first: one secret may contain another.
    this.#secrets = [...new Set(secrets)]
      .filter(({ length }) => length >= shortest)
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

  /** The same for every text in a value; values of other kinds, and what has no secret, come back as they are. */
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
    // Most have none, so most are not copied.
    let copy: Record<string, unknown> | undefined;
    for (const name of Object.keys(value)) {
      const member = (value as Readonly<Record<string, unknown>>)[name];
      const shown = this.value(member);
      if (shown !== member) (copy ??= { ...(value as object) })[name] = shown;
    }
    return copy ? (copy as T) : value;
  }

  /** For the pieces of one text: a secret may be cut anywhere. */
  pieces(): MaskedPieces {
    return new MaskedPieces(this.#secrets);
  }

  #contains(text: string): boolean {
    return this.#secrets.some((secret) => text.includes(secret));
  }
}

/** A text that comes in pieces. Of a secret that is cut, five characters at most get out before it is known as one. */
export class MaskedPieces {
  readonly #secrets: readonly string[];
  /** The end of the text so far; its first `#sent` characters are out. */
  #tail = "";
  #sent = 0;

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
  }

  /** What may go out of it now. */
  push(piece: string): string {
    this.#tail += piece;
    let out = "";
    for (let found = this.#firstSecret(); found; found = this.#firstSecret()) {
      out += this.#tail.slice(this.#sent, Math.max(found.at, this.#sent)) + masked;
      this.#tail = this.#tail.slice(found.at + found.length);
      this.#sent = 0;
    }
    const beginning = this.#secretBegun();
    const free = Math.max(this.#sent, this.#tail.length - (beginning > coincidence ? beginning : 0));
    out += this.#tail.slice(this.#sent, free);
    const kept = this.#tail.length - Math.max(beginning, this.#tail.length - free);
    this.#tail = this.#tail.slice(kept);
    this.#sent = free - kept;
    return out;
  }

  /** What was held back: the text is over, or goes on elsewhere. */
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

  /** How many characters at the end of the text could be the beginning of a secret. */
  #secretBegun(): number {
    let longest = 0;
    for (const secret of this.#secrets) {
      for (let length = Math.min(secret.length - 1, this.#tail.length); length > longest; length--) {
        if (this.#tail.endsWith(secret.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}

/** The events of one generation without secrets, cut ones included. */
export class MaskedEvents {
  readonly #mask: Mask;
  /** The open text of each choice: within a choice, texts follow each other. */
  readonly #texts = new Map<number, OpenText>();

  constructor(mask: Mask) {
    this.#mask = mask;
  }

  /** What may go out of a batch; empty where all of it is held back. */
  read(events: readonly GenerationEvent[]): readonly GenerationEvent[] {
    const out: GenerationEvent[] = [];
    for (const event of events) this.#readOne(event, out);
    return out;
  }

  #readOne(event: GenerationEvent, out: GenerationEvent[]): void {
    // These stand between the pieces of a text, and end none.
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
      this.#texts.set(event.choice, (text = { key, pieces: this.#mask.pieces(), last: event }));
    }
    text.last = event;
    const before = textOf(event);
    const shown = text.pieces.push(before);
    if (shown === before) out.push(event);
    else if (shown !== "") out.push(withText(event, shown));
  }

  /** Ends the open text of a choice. */
  #flush(choice: number, out: GenerationEvent[]): void {
    const text = this.#texts.get(choice);
    if (!text) return;
    const rest = text.pieces.end();
    if (rest !== "") out.push(withText(text.last, rest));
    this.#texts.delete(choice);
  }
}

interface OpenText {
  /** Its kind, and the call or the part of a summary that it belongs to. */
  readonly key: string;
  readonly pieces: MaskedPieces;
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

/** The event with another text; its logprobs would spell out the text that it had. */
function withText(event: GenerationEvent, text: string): GenerationEvent {
  if (event.type === "tool-call-delta") return { ...event, arguments: text };
  if (!("text" in event)) return event;
  const { logprobs: _, ...rest } = { logprobs: undefined, ...event };
  return { ...rest, text } as GenerationEvent;
}

type Level = Exclude<keyof Log, "isLevelEnabled">;

/** A log whose lines show no secret. `mask` is asked for each line: a configuration may be read again. */
export function maskedLog(log: Log, mask: () => Mask): Log {
  const line =
    (level: Level): Log[Level] =>
    (fields, message) => {
      // What nobody reads need not be looked through.
      if (log.isLevelEnabled?.(level) === false) return;
      log[level](mask().value(fields), mask().text(message));
    };
  return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
}
