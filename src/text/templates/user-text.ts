import { invalidRequest } from "../../wire/core/failure.ts";
import { ExactNumber } from "./exact-json.ts";
import type { PromptSpan } from "./rendered-prompt.ts";

/** The most characters that a template writes, its JSON included: twice a request body of 32 MiB. */
const maxWritten = 64 * 2 ** 20;

/**
 * Prevents client text from being tokenized as special tokens. Before rendering, each special token in a client's string is replaced by a
 * mark: one private-use character, which the template copies like any other. After rendering, the prompt is split at the marks, and each
 * mark is replaced by its text, which is tokenized as plain text. An instance is used for one rendering.
 *
 * Only a character that neither the template nor any client string contains becomes a mark. Code that reads characters (to compare,
 * measure, cut or escape them) must use this class, so that the prompt is the same as without marks; `jinja/` does.
 */
export class UserText {
  readonly #tokens: GuardedTokens;
  readonly #taken = new Set<string>();
  readonly #markOf = new Map<string, string>();
  readonly #textOf = new Map<string, string>();
  /** The marks of images and recordings with their indexes. */
  readonly #mediumOf = new Map<string, number>();
  #next = 0xe000;
  #written = 0;

  /** `values`: all client input of the template, as JSON values. */
  constructor(tokens: GuardedTokens, templateSource: string, values: readonly unknown[]) {
    this.#tokens = tokens;
    const note = (text: string): string => {
      for (const [character] of text.matchAll(privateUse)) this.#taken.add(character);
      return text;
    };
    note(templateSource);
    for (const value of values) mapStrings(value, note);
  }

  /**
   * Counts characters that the template writes. Throws a RangeError when they are more than any context holds: JSON with indentation may be
   * a hundred times as long as the client's, and a text of hundreds of megabytes ends the process that makes it.
   */
  countWritten(characters: number): void {
    this.#written += characters;
    if (this.#written > maxWritten) throw new RangeError(`the prompt has more than ${maxWritten} characters`);
  }

  /** Returns a copy of a JSON value in which all strings and keys are marked. */
  mark<T>(value: T): T {
    return mapStrings(value, (text) => this.markText(text)) as T;
  }

  /** Like `mark`, for a value that may come from others than the application and its model: markup is marked, too. */
  markForeign<T>(value: T): T {
    return mapStrings(value, (text) => this.markForeignText(text)) as T;
  }

  /** Marks everything in a client's string that could become a special token: tokens, and parts of a token at either end. */
  markText(text: string): string {
    return this.#marked(text, this.#tokens.everywhere);
  }

  /** Like `markText`, for a text that may come from others than the application and its model: markup is marked, too. */
  markForeignText(text: string): string {
    return this.#marked(text, this.#tokens.foreign);
  }

  #marked(text: string, tokens: TokenFinder): string {
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

  /** Replaces the whole text by one mark. */
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

  /** Returns a mark that represents the image or the recording of an index. */
  markMedium(index: number): string {
    const mark = this.#freeCharacter();
    this.#textOf.set(mark, mediumText);
    this.#mediumOf.set(mark, index);
    return mark;
  }

  /** Returns a character that occurs nowhere else. */
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

  /** Whether the text contains marks. */
  hasMarks(text: string): boolean {
    if (this.#textOf.size === 0) return false;
    for (const [character] of text.matchAll(privateUse)) if (this.#textOf.has(character)) return true;
    return false;
  }

  /** Returns the text as the client wrote it, without marks. */
  plain(text: string): string {
    return this.#textOf.size > 0
      ? text.replace(privateUse, (character) => this.#textOf.get(character) ?? character)
      : text;
  }

  /** Changes a text and keeps its marks: `change` is called for each text between marks, and for the text of each mark. */
  change(text: string, change: (part: string) => string): string {
    if (!this.hasMarks(text)) return change(text);
    return this.#spans(text)
      .map(({ text: part, special, mark }) => mark ?? (special ? change(part) : this.markWhole(change(part))))
      .join("");
  }

  /** Returns the code points of the text as the client wrote it. Each code point of a marked text gets a mark of its own. */
  characters(text: string): string[] {
    if (!this.hasMarks(text)) return Array.from(text);
    return Array.from(text).flatMap((character) => {
      const whole = this.#textOf.get(character);
      return whole === undefined || this.#mediumOf.has(character)
        ? character
        : Array.from(whole, (part) => this.markWhole(part));
    });
  }

  /** Returns the spellings that a key may have in a client's mapping: unchanged or marked. */
  spellings(text: string): readonly string[] {
    if (this.#textOf.size === 0) return [text];
    const plain = this.plain(text);
    return [...new Set([text, plain, this.markText(plain), this.markForeignText(plain)])];
  }

  /** Splits a rendered text into spans without marks. */
  split(rendered: string): PromptSpan[] {
    return this.#spans(rendered).flatMap(({ mark, ...span }): PromptSpan | PromptSpan[] => {
      const medium = mark === undefined ? undefined : this.#mediumOf.get(mark);
      if (medium !== undefined) return { ...span, medium };
      return span.special ? span : this.#tokens.markup.apart(span.text).map((text) => ({ text, special: false }));
    });
  }

  /** `mark`: that of an image or a recording. */
  #spans(text: string): (PromptSpan & { readonly mark?: string })[] {
    const spans: (PromptSpan & { readonly mark?: string })[] = [];
    const add = (text: string, special: boolean): void => {
      const last = spans.at(-1);
      if (text === "") return;
      if (last?.special === special && last.mark === undefined)
        spans[spans.length - 1] = { text: last.text + text, special };
      else spans.push({ text, special });
    };
    let from = 0;
    if (this.#textOf.size > 0) {
      for (const match of text.matchAll(privateUse)) {
        const plain = this.#textOf.get(match[0]);
        if (plain === undefined) continue;
        add(text.slice(from, match.index), true);
        if (this.#mediumOf.has(match[0])) spans.push({ text: plain, special: false, mark: match[0] });
        else add(plain, false);
        from = match.index + match[0].length;
      }
    }
    add(text.slice(from), true);
    return spans;
  }
}

/** The text of an image or a recording in a rendered prompt, as llama.cpp shows it (mtmd.h, `mtmd_default_marker`). */
const mediumText = "<__media__>";

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

/** The tokens that client text must not become. */
export interface GuardedTokens {
  /** Guarded in all client text. */
  readonly everywhere: TokenFinder;
  /** Guarded in texts that may come from others (user messages, tool results): the same tokens and the markup. */
  readonly foreign: TokenFinder;
  /**
   * Only the markup: tokens of the vocabulary that structure a conversation (`<tool_call>`, `</think>`) and are not control tokens.
   * Tokenizers find them in plain text, too: llama.cpp (`tokenizer_st_partition`) and Hugging Face's tokenizers match user-defined tokens
   * with and without special tokens.
   */
  readonly markup: TokenFinder;
}

/**
 * `markup`: tokens that are not control tokens. Only those that occur in the template are guarded; others are text. Two kinds cannot or
 * need not be guarded: tokens of one character, which cannot be split, and fragments of JSON such as `": "`, which have no special meaning
 * and which a model knows as one token.
 */
export function guardedTokens(
  control: readonly string[],
  markup: readonly string[],
  templateLiterals: readonly string[],
): GuardedTokens {
  const everywhere = new TokenFinder(control, templateLiterals);
  const written = templateLiterals.join("\n");
  const used = markup.filter(
    (token) => Array.from(token).length > 1 && !isJsonFragment(token) && written.includes(token),
  );
  if (used.length === 0) return { everywhere, foreign: everywhere, markup: noTokens };
  return {
    everywhere,
    foreign: new TokenFinder([...control, ...used], templateLiterals),
    markup: new TokenFinder(used, []),
  };
}

/** JSON punctuation, with or without names; not a tag, and not a name in brackets (`[TOOL_CALLS]`). */
function isJsonFragment(token: string): boolean {
  return /^(?:[{}\]",:]|\[(?![\w/]))/.test(token) && !/[<>｜]/.test(token);
}

/** A part of a text, by its offsets. */
export interface TokenRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Finds tokens in client strings with a trie, in one pass over each string.
 *
 * A client can also form a token together with the template, which may write `<` + name + `>`, or with an adjacent string. Such a token
 * begins at the end of a client string, which is always marked, or at the end of a literal of the template; for templates with such
 * literals, the beginning of client strings is marked.
 */
export class TokenFinder {
  readonly #root: Node = { next: new Map(), ends: false };
  readonly #starts: RegExp | null;
  readonly #longest: number;
  /** The nodes at which literals of the template end inside a token. */
  readonly #dangling: readonly Node[];

  /**
   * `templateLiterals`: all literal texts of the template. White-space tokens are not guarded: they have no meaning, and templates could
   * not trim marks.
   */
  constructor(tokens: readonly string[], templateLiterals: readonly string[]) {
    const used = tokens.filter((token) => token.trim() !== "");
    for (const token of used) {
      let node = this.#root;
      for (const character of token) {
        let next = node.next.get(character);
        if (!next) node.next.set(character, (next = { next: new Map(), ends: false }));
        node = next;
      }
      node.ends = true;
    }
    this.#longest = Math.max(0, ...used.map((token) => token.length));
    const starts = [...this.#root.next.keys()];
    this.#starts = starts.length === 0 ? null : new RegExp(starts.map(escaped).join("|"), "gu");
    this.#dangling = [...new Set(templateLiterals.flatMap((literal) => this.#openAtEnd(literal)?.node ?? []))];
  }

  /** Returns the ranges that must be marked in a client's string, in order and without overlaps. */
  findIn(text: string): TokenRange[] {
    if (this.#starts === null || text === "") return [];
    const found: TokenRange[] = [];
    const head = this.#continued(text);
    let from = 0;
    if (head > 0) {
      found.push({ start: 0, end: head });
      from = head;
    }
    this.#starts.lastIndex = from;
    for (let match = this.#starts.exec(text); match !== null; match = this.#starts.exec(text)) {
      const end = this.#walk(this.#root, text, match.index).end;
      if (end === null) continue;
      found.push({ start: match.index, end });
      from = end;
      this.#starts.lastIndex = end;
    }
    const open = this.#openAtEnd(text, from);
    if (open !== null) found.push({ start: open.start, end: text.length });
    return found;
  }

  /** Splits a text into parts that contain no whole token: each token is cut after its first character. */
  apart(text: string): string[] {
    if (this.#starts === null) return [text];
    const parts: string[] = [];
    let from = 0;
    this.#starts.lastIndex = 0;
    for (let match = this.#starts.exec(text); match !== null; match = this.#starts.exec(text)) {
      if (this.#walk(this.#root, text, match.index).end === null) continue;
      const cut = match.index + match[0].length;
      parts.push(text.slice(from, cut));
      from = cut;
    }
    return from < text.length ? [...parts, text.slice(from)] : parts;
  }

  /** Returns the end of the longest token at `start`, and the node that was reached if the text ends inside a token. */
  #walk(node: Node, text: string, start: number): { end: number | null; open: Node | null } {
    let end: number | null = null;
    let at = start;
    let here: Node | undefined = node;
    while (at < text.length) {
      const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
      here = here.next.get(character);
      if (here === undefined) return { end, open: null };
      at += character.length;
      if (here.ends) end = at;
    }
    return { end, open: here.next.size > 0 ? here : null };
  }

  /** Finds the longest suffix of the text that is a proper prefix of a token. */
  #openAtEnd(text: string, from = 0): { start: number; node: Node } | null {
    if (this.#starts === null) return null;
    this.#starts.lastIndex = Math.max(from, text.length - this.#longest + 1);
    for (let match = this.#starts.exec(text); match !== null; match = this.#starts.exec(text)) {
      const { open } = this.#walk(this.#root, text, match.index);
      if (open !== null) return { start: match.index, node: open };
    }
    return null;
  }

  /** Length of the longest prefix of the text that continues a token begun by a literal of the template. */
  #continued(text: string): number {
    let longest = 0;
    for (const node of this.#dangling) {
      const { end, open } = this.#walk(node, text, 0);
      longest = Math.max(longest, open === null ? (end ?? 0) : text.length);
    }
    return longest;
  }
}

const noTokens = new TokenFinder([], []);

interface Node {
  readonly next: Map<string, Node>;
  /** A token ends here. */
  ends: boolean;
}

function escaped(character: string): string {
  return character.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
}
