import type { GenerationEvent } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";

/** What the one changing string of a chunk is. */
export type HoleKind = "text" | "reasoning" | "arguments";

/** Where the one string of a chunk stands, below its choice, that became the chunk's one event. */
export interface Hole {
  readonly path: HolePath;
  readonly kind: HoleKind;
}

interface Known<Choice> {
  readonly choice: Choice;
  readonly kind: HoleKind;
  readonly template: ChunkTemplate;
}

/** So many choices may be told apart by their chunks. */
const mostTemplates = 8;

/** The chunks that a stream repeats but for one string, one for each choice; see `ChunkTemplate`. */
export class KnownChunks<Choice> {
  #known: readonly Known<Choice>[] = [];
  /** Learning costs two more parses, so it stops for a source whose chunks never repeat. */
  #learnt = 0;
  #matched = 0;

  /** Passes the changing string of a known chunk to `tell`; false when the chunk is not known, or `tell` returns false. */
  match(
    line: string,
    start: number,
    end: number,
    tell: (choice: Choice, kind: HoleKind, text: string) => boolean,
  ): boolean {
    for (const { choice, kind, template } of this.#known) {
      const text = template.match(line, start, end);
      if (text === null || text === "") continue;
      if (!tell(choice, kind, text)) return false;
      this.#matched++;
      return true;
    }
    return false;
  }

  /** Learns a chunk that became `event` alone. */
  learn(chunk: string, hole: Hole, event: GenerationEvent, choice: Choice): void {
    if (this.#learnt >= mostTemplates && this.#matched < this.#learnt * 2) return;
    const text = changingText(event);
    const template = text === null ? null : ChunkTemplate.learn(chunk, ["choices", 0, ...hole.path], text);
    if (!template) return;
    this.#learnt++;
    const others = this.#known.filter((known) => known.choice !== choice).slice(1 - mostTemplates);
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

/** Where in a chunk the one changing string stands. */
type HolePath = readonly (string | number)[];

/**
 * A cheap proof that a chunk says the same as an earlier one, but for one string.
 *
 * Most chunks of a stream differ in the text of their delta alone. After one of them was parsed and understood, the text around
 * that string is kept. A later chunk with the same text before and after it, and a valid JSON string body between, is then proved to
 * be the same JSON but for that string, since JSON's grammar has no context beyond the closing quote. Parsing it whole would tell
 * nothing more. OpenAI's `obfuscation`, a second string that changes, is allowed for at the end.
 */
class ChunkTemplate {
  readonly #before: string;
  readonly #after: string;
  /** What follows the value of `obfuscation`; null without one. Then `#after` ends with that value's opening quote. */
  readonly #tail: string | null;

  private constructor(before: string, after: string, tail: string | null) {
    this.#before = before;
    this.#after = after;
    this.#tail = tail;
  }

  /** Learns from a chunk whose string at `path` is `value`; null when its place in the text cannot be proved. */
  static learn(chunk: string, path: HolePath, value: string): ChunkTemplate | null {
    const key = path.at(-1);
    if (typeof key !== "string") return null;
    // Inside a JSON string every quote has a backslash, so this matches keys only.
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

  /** The changed string of the chunk that `text` is from `start` to `end`, if it is otherwise the one learnt from; else null. */
  match(text: string, start: number, end: number): string | null {
    const from = start + this.#before.length;
    // Slices are views, and comparing them is a comparison of memory: several times faster than `startsWith`.
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

  /** Where `#after` begins, if the chunk ends in obfuscation and `tail`; else −1. */
  #beforeObfuscation(text: string, end: number, tail: string): number {
    let at = end - tail.length;
    if (text.slice(at, end) !== tail) return -1;
    while (at > 0 && isBase62(text.charCodeAt(at - 1))) at--;
    return at - this.#after.length;
  }
}

const quote = 0x22;
const backslash = 0x5c;

function closingQuote(text: string, from: number): number {
  let at = from;
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return at;
}

/** The value of a JSON string's body; null when it is none. */
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
