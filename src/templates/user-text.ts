import { invalidRequest } from "../core/failure.ts";
import { ExactNumber } from "./exact-json.ts";
import type { PromptSpan } from "./rendered-prompt.ts";
import type { GuardedTokens, SpecialTokens } from "./special-tokens.ts";

/**
 * Keeps a client's text from becoming special tokens. Before rendering, each special token that is
 * spelled in a string of the client is replaced by a mark, one private-use character; the template moves it like any other
 * character, through trimming, conditions and JSON; after rendering, the prompt is split at the marks, and the text behind a
 * mark is plain text. One object serves one rendering.
 *
 * A character becomes a mark only when neither the template nor any string of the client contains it, so nothing can be mistaken for
 * a mark. Code that looks at characters rather than moving them (comparing, measuring, cutting, escaping) must ask this class, so
 * that the prompt is the same as without marks; `jinja/` does.
 */
export class UserText {
  readonly #tokens: GuardedTokens;
  readonly #taken = new Set<string>();
  readonly #markOf = new Map<string, string>();
  readonly #textOf = new Map<string, string>();
  #next = 0xe000;

  /** `values`: everything of the client that the template will see, JSON values of any depth. */
  constructor(tokens: GuardedTokens, templateSource: string, values: readonly unknown[]) {
    this.#tokens = tokens;
    const note = (text: string): string => {
      for (const [character] of text.matchAll(privateUse)) this.#taken.add(character);
      return text;
    };
    note(templateSource);
    for (const value of values) mapStrings(value, note);
  }

  /** A copy of a JSON value, with everything marked in its strings and keys that could become a special token. */
  mark<T>(value: T): T {
    return mapStrings(value, (text) => this.markText(text)) as T;
  }

  /** The same for a value that may come from others than the application and its model: markup is marked, too. */
  markForeign<T>(value: T): T {
    return mapStrings(value, (text) => this.markForeignText(text)) as T;
  }

  /** Marks everything in a client's string that could become a special token: whole tokens, and parts of one at either end. */
  markText(text: string): string {
    return this.#marked(text, this.#tokens.everywhere);
  }

  /** The same for a text that may come from others than the application and its model: markup is marked, too. */
  markForeignText(text: string): string {
    return this.#marked(text, this.#tokens.foreign);
  }

  #marked(text: string, tokens: SpecialTokens): string {
    const found = tokens.findIn(text);
    if (found.length === 0) return text;
    let marked = "";
    let from = 0;
    for (const { start, end } of found) {
      marked += text.slice(from, start) + this.markWhole(text.slice(start, end));
      from = end;
    }
    return marked + text.slice(from);
  }

  /** One mark for the whole text. */
  markWhole(text: string): string {
    if (text === "") return "";
    let mark = this.#markOf.get(text);
    if (mark === undefined) {
      mark = this.#freeCharacter();
      this.#markOf.set(text, mark);
      this.#textOf.set(mark, text);
    }
    return mark;
  }

  /** A character that occurs nowhere else, to mark a place. */
  placeMark(): string {
    return this.#freeCharacter();
  }

  #freeCharacter(): string {
    for (;;) {
      if (this.#next === 0xf900) this.#next = 0xf0000;
      if (this.#next > 0x10fffd) {
        throw invalidRequest("The messages contain every private-use character of Unicode; none is left to work with.");
      }
      const character = String.fromCodePoint(this.#next++);
      if (!this.#taken.has(character)) return character;
    }
  }

  /** Whether anything in the text is marked. */
  hasMarks(text: string): boolean {
    if (this.#textOf.size === 0) return false;
    for (const [character] of text.matchAll(privateUse)) if (this.#textOf.has(character)) return true;
    return false;
  }

  /** The text without marks, as the client wrote it. */
  plain(text: string): string {
    return this.#textOf.size > 0
      ? text.replace(privateUse, (character) => this.#textOf.get(character) ?? character)
      : text;
  }

  /** Changes a text in which marks stay whole: `change` sees what lies between them, and what each stands for, on its own. */
  change(text: string, change: (piece: string) => string): string {
    if (!this.hasMarks(text)) return change(text);
    return this.#pieces(text)
      .map((span) => (span.special ? change(span.text) : this.markWhole(change(span.text))))
      .join("");
  }

  /** The characters (code points) of the text as the client wrote it, those under a mark each under one of their own. */
  characters(text: string): string[] {
    if (!this.hasMarks(text)) return Array.from(text);
    return Array.from(text).flatMap((character) => {
      const whole = this.#textOf.get(character);
      return whole === undefined ? character : Array.from(whole, (part) => this.markWhole(part));
    });
  }

  /** The spellings under which a key may stand in a mapping of the client: as it is, or marked. */
  spellings(text: string): readonly string[] {
    if (this.#textOf.size === 0) return [text];
    const plain = this.plain(text);
    return [...new Set([text, plain, this.markText(plain), this.markForeignText(plain)])];
  }

  /** A rendered text in spans, with the marks turned back. */
  split(rendered: string): PromptSpan[] {
    return this.#pieces(rendered).flatMap((span) =>
      span.special ? span : this.#tokens.markup.apart(span.text).map((text) => ({ text, special: false })),
    );
  }

  #pieces(text: string): PromptSpan[] {
    const spans: PromptSpan[] = [];
    const add = (text: string, special: boolean): void => {
      const last = spans.at(-1);
      if (text === "") return;
      if (last?.special === special) spans[spans.length - 1] = { text: last.text + text, special };
      else spans.push({ text, special });
    };
    let from = 0;
    if (this.#textOf.size > 0) {
      for (const match of text.matchAll(privateUse)) {
        const plain = this.#textOf.get(match[0]);
        if (plain === undefined) continue;
        add(text.slice(from, match.index), true);
        add(plain, false);
        from = match.index + match[0].length;
      }
    }
    add(text.slice(from), true);
    return spans;
  }
}

const privateUse = /[\u{e000}-\u{f8ff}\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}]/gu;

function mapStrings(value: unknown, change: (text: string) => string): unknown {
  if (value instanceof ExactNumber) return value;
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, change));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [change(key), mapStrings(item, change)]));
  }
  return value;
}
