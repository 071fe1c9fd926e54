import type { GenerationEvent } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";

/** The kind of the changing string of a chunk. */
export type HoleKind = "text" | "reasoning" | "arguments";

/** The path, below the choice, of the string that became the chunk's only event. */
export interface Hole {
  readonly path: HolePath;
  readonly kind: HoleKind;
}

interface Known<Choice> {
  readonly choice: Choice;
  readonly kind: HoleKind;
  readonly template: ChunkTemplate;
}

/** The maximum number of choices with a template. */
const maxTemplates = 8;

/** Emits the event of a known chunk. Returns false if it cannot: then the chunk is parsed. */
export type EmitKnown<Choice> = (choice: Choice, kind: HoleKind, text: string) => boolean;

/** Templates of the chunks that a stream repeats except for one string, one for each choice; see `ChunkTemplate`. */
export class KnownChunks<Choice> {
  #known: readonly Known<Choice>[] = [];
  /** Learning costs two further parses, so it stops for a source whose chunks do not repeat. */
  #learned = 0;
  #matched = 0;

  /**
   * Passes the changing string of a known chunk, the line in `text` from `start` to `end`, to `emit`; with `mayFollow`, those of the known
   * chunks that directly follow, too. Returns the end of the last line that was read; −1 if the first one is unknown or was not emitted.
   */
  match(text: string, start: number, end: number, emit: EmitKnown<Choice>, mayFollow: boolean): number {
    for (const { choice, kind, template } of this.#known) {
      const changing = template.match(text, start, end);
      if (changing === null || changing === "") continue;
      const emitOne = (one: string): boolean => {
        if (one === "" || !emit(choice, kind, one)) return false;
        this.#matched++;
        return true;
      };
      if (!emitOne(changing)) return -1;
      return mayFollow ? template.follow(text, end, emitOne) : end;
    }
    return -1;
  }

  /** Learns a chunk whose only event is `event`. */
  learn(chunk: string, hole: Hole, event: GenerationEvent, choice: Choice): void {
    if (this.#learned >= maxTemplates && this.#matched < this.#learned * 2) return;
    const text = changingText(event);
    const template = text === null ? null : ChunkTemplate.learn(chunk, ["choices", 0, ...hole.path], text);
    if (!template) return;
    this.#learned++;
    const others = this.#known.filter((known) => known.choice !== choice).slice(1 - maxTemplates);
    this.#known = [...others, { choice, kind: hole.kind, template }];
  }

  forget(): void {
    this.#known = [];
  }
}

function changingText(event: GenerationEvent): string | null {
  if (event.type === "text-delta" || event.type === "reasoning-delta") return event.logprobs ? null : event.text;
  return event.type === "tool-call-delta" ? event.arguments : null;
}

/** The path of the changing string in a chunk. */
type HolePath = readonly (string | number)[];

/**
 * Detects a chunk that equals an earlier one except for one string, without parsing it.
 *
 * Most chunks of a stream differ only in the text of their delta. After one of them was parsed, the text around that string is stored. A
 * later chunk with the same text before and after a valid JSON string body is the same JSON except for that string, because JSON's grammar
 * has no context beyond the closing quote. OpenAI's `obfuscation` may be a second changing string at the end.
 */
class ChunkTemplate {
  readonly #before: string;
  readonly #after: string;
  /** The text after the value of `obfuscation`, whose opening quote ends `#after`; null without `obfuscation`. */
  readonly #tail: string | null;
  /** What is between the end of a chunk and the changing string of the next one; and between two changing strings. */
  readonly #head: string;
  readonly #link: string;

  private constructor(before: string, after: string, tail: string | null) {
    this.#before = before;
    this.#after = after;
    this.#tail = tail;
    this.#head = `${between}${before}`;
    this.#link = `${after}${this.#head}`;
  }

  /** Makes a template of a chunk whose string at `path` is `value`; null if its position in the text is ambiguous. */
  static learn(chunk: string, path: HolePath, value: string): ChunkTemplate | null {
    const key = path.at(-1);
    if (typeof key !== "string") return null;
    // Within a JSON string every quote is escaped, so this matches keys only.
    for (const match of chunk.matchAll(new RegExp(`"${key}"\\s*:\\s*"`, "g"))) {
      const start = match.index + match[0].length;
      const end = closingQuote(chunk, start);
      const before = chunk.slice(0, start);
      const after = chunk.slice(end);
      if (decode(chunk.slice(start, end)) !== value) continue;
      if (valueAt(`${before}probe${after}`, path) !== "probe") continue;
      const [, head, tail] = /^(.*"obfuscation":")[0-9A-Za-z]*("\}\s*)$/s.exec(after) ?? [];
      return head === undefined || tail === undefined
        ? new ChunkTemplate(before, after, null)
        : new ChunkTemplate(before, head, tail);
    }
    return null;
  }

  /** The changed string of the chunk in `text` from `start` to `end`; null if the chunk does not match. */
  match(text: string, start: number, end: number): string | null {
    const from = start + this.#before.length;
    // Slices are views that are compared as memory: several times faster than `startsWith`.
    if (text.slice(start, from) !== this.#before) return null;
    const to = this.#tail === null ? end - this.#after.length : this.#beforeObfuscation(text, end, this.#tail);
    if (to < from || text.slice(to, to + this.#after.length) !== this.#after) return null;
    for (let i = from; i < to; i++) {
      const code = text.charCodeAt(i);
      if (code === backslash) return decode(text.slice(from, to));
      if (code === quote || code < 0x20) return null;
    }
    return text.slice(from, to);
  }

  /**
   * Passes the changing strings of the chunks that directly follow the matched line that ends at `end` to `emit`, until one is unknown, is not
   * complete, or `emit` returns false. Returns the end of the last line that was read. In a burst, each chunk takes one comparison, and no
   * search for its end.
   */
  follow(text: string, end: number, emit: (changing: string) => boolean): number {
    const head = this.#head;
    if (this.#tail !== null || text.slice(end, end + head.length) !== head) return end;
    const link = this.#link;
    let last = end;
    for (let hasNext = true; hasNext;) {
      const from = last + head.length;
      let isPlain = true;
      let to = from;
      for (let code = text.charCodeAt(to); code !== quote; code = text.charCodeAt(to)) {
        // NaN: the text ends within the string.
        if (!(code >= 0x20)) return last;
        if (code === backslash) isPlain = false;
        to += code === backslash ? 2 : 1;
      }
      hasNext = text.slice(to, to + link.length) === link;
      const lineEnd = to + this.#after.length;
      if (!hasNext && (text.slice(to, lineEnd) !== this.#after || !text.startsWith("\n\n", lineEnd))) return last;
      const changing = isPlain ? text.slice(from, to) : decode(text.slice(from, to));
      if (changing === null || !emit(changing)) return last;
      last = lineEnd;
    }
    return last;
  }

  /** The position of `#after` if the chunk ends with obfuscation and `tail`; else −1. */
  #beforeObfuscation(text: string, end: number, tail: string): number {
    let at = end - tail.length;
    if (text.slice(at, end) !== tail) return -1;
    while (at > 0 && isBase62(text.charCodeAt(at - 1))) at--;
    return at - this.#after.length;
  }
}

/** Between the data of two events, as servers usually write it. */
const between = "\n\ndata: ";
const quote = 0x22;
const backslash = 0x5c;

function closingQuote(text: string, from: number): number {
  let at = from;
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return at;
}

/** The value of a JSON string's body; null if it is invalid. */
function decode(body: string): string | null {
  try {
    const value: unknown = JSON.parse(`"${body}"`);
    return typeof value === "string" ? value : null;
  } catch {
    return null;
  }
}

function valueAt(text: string, path: HolePath): unknown {
  let value: unknown = JSON.parse(text);
  for (const step of path) {
    if (Array.isArray(value)) value = value[Number(step)];
    else if (isObject(value)) value = value[step];
    else return undefined;
  }
  return value;
}

function isBase62(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
}
