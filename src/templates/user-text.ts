import type { PromptSpan } from "./rendered-prompt.ts";

/**
 * Keeps a client's text from becoming special tokens (requirements T12). Before rendering, each special token that is spelled in a
 * string of the client is replaced by one private-use character; the template moves that character like any other, through
 * trimming, conditions and JSON; after rendering the prompt is split there, and what the character stood for is plain text.
 *
 * A character is only used as a mark when neither the template nor any string of the client contains it, so nothing can be mistaken
 * for a mark.
 */
export class UserText {
  readonly #markOf = new Map<string, string>();
  readonly #textOf = new Map<string, string>();
  readonly #special: RegExp | null;
  #marks: RegExp | null = null;

  constructor(specialTokens: readonly string[]) {
    this.#special = alternatives(specialTokens);
  }

  /** A copy of a JSON value with every special token in its strings and keys marked. */
  mark<T>(value: T): T {
    return mapStrings(value, (text) => this.markText(text)) as T;
  }

  markText(text: string): string {
    if (this.#special === null) return text;
    return text.replace(this.#special, (token) => this.#mark(token));
  }

  #mark(token: string): string {
    let mark = this.#markOf.get(token);
    if (mark === undefined) {
      mark = String.fromCodePoint(0xe000 + this.#markOf.size);
      this.#markOf.set(token, mark);
      this.#textOf.set(mark, token);
      this.#marks = alternatives([...this.#textOf.keys()]);
    }
    return mark;
  }

  /** The rendered text in pieces, marks turned back. */
  split(rendered: string): PromptSpan[] {
    if (this.#marks === null) return rendered === "" ? [] : [{ text: rendered, special: true }];
    const spans: PromptSpan[] = [];
    let from = 0;
    for (const match of rendered.matchAll(this.#marks)) {
      if (match.index > from) spans.push({ text: rendered.slice(from, match.index), special: true });
      spans.push({ text: this.#textOf.get(match[0]) ?? "", special: false });
      from = match.index + match[0].length;
    }
    if (from < rendered.length) spans.push({ text: rendered.slice(from), special: true });
    return spans;
  }
}

function alternatives(texts: readonly string[]): RegExp | null {
  const escaped = texts
    .filter((text) => text.trim() !== "")
    .sort((a, b) => b.length - a.length)
    .map((text) => text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"));
  return escaped.length === 0 ? null : new RegExp(escaped.join("|"), "g");
}

function mapStrings(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, change));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [change(key), mapStrings(item, change)]));
  }
  return value;
}
