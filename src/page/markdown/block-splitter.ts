import type { Token } from "markdown-it";
import { markdown } from "./parser.ts";

/** A part of a Markdown text that is rendered independently of all others. */
export type MarkdownBlock =
  | {
      readonly kind: "markdown";
      readonly source: string;
      /** The number of the first item, of an ordered list that continues the previous block. */
      readonly start?: number;
    }
  | {
      readonly kind: "code";
      /** The first word after the fence. */
      readonly language: string;
      /** The code, in parts of some lines. */
      readonly chunks: readonly string[];
      readonly closed: boolean;
    };

/** A block is cut at its first line, item, child or row that begins after this many characters. */
const blockLength = 3000;
/** A longer line is broken at its last space before. */
const maxLineLength = 6000;
/** A block that nothing above can cut is cut at the first line that begins after this many characters. */
const maxBlockLength = 65_536;
/** Characters in one call of the parser. */
const windowLength = 4096;
/** The header of a table is repeated in the next block if it is at most this long. In characters. */
const maxHeaderLength = 1000;

/** A fenced code block whose closing fence has not arrived. */
class OpenFence {
  readonly language: string;
  readonly #indent: RegExp;
  readonly #closing: RegExp;
  readonly #chunks: string[] = [];
  #chunk = "";
  /** The line that has not ended. */
  #line = "";
  #insideLine = false;

  constructor(indent: number, marker: string, info: string) {
    this.language = /^\S*/.exec(info.trim())?.[0] ?? "";
    this.#indent = new RegExp(`^ {0,${indent}}`);
    this.#closing = new RegExp(`^ {0,3}\\${marker[0]}{${marker.length},}[ \\t]*$`);
  }

  /** Takes what follows, and returns the text after the closing fence; undefined if it is not in the text. */
  push(text: string): string | undefined {
    for (let from = 0; ;) {
      const end = text.indexOf("\n", from);
      this.#line += text.slice(from, end === -1 ? undefined : end);
      while (this.#line.length > maxLineLength) {
        const end = characterEnd(this.#line, maxLineLength);
        this.#append(this.#line.slice(0, end));
        this.#line = this.#line.slice(end);
        this.#insideLine = true;
      }
      if (end === -1) return undefined;
      if (this.#isClosing) return text.slice(end + 1);
      this.#append(`${this.#line}\n`);
      this.#line = "";
      this.#insideLine = false;
      from = end + 1;
    }
  }

  get block(): MarkdownBlock {
    const closed = this.#isClosing;
    const rest = closed ? this.#chunk : this.#chunk + this.#unindented(this.#line);
    const chunks = rest === "" ? [...this.#chunks] : [...this.#chunks, rest];
    return { kind: "code", language: this.language, chunks, closed };
  }

  get #isClosing(): boolean {
    return !this.#insideLine && this.#closing.test(this.#line);
  }

  #unindented(text: string): string {
    return this.#insideLine ? text : text.replace(this.#indent, "");
  }

  #append(text: string): void {
    this.#chunk += this.#unindented(text);
    if (this.#chunk.length < blockLength) return;
    this.#chunks.push(this.#chunk);
    this.#chunk = "";
  }
}

/**
 * Splits a Markdown text that grows into blocks. A block is closed as soon as nothing that follows can change it, and is not parsed again
 * afterwards: only complete lines decide, and what closes a block depends on the text alone, not on how it was divided into chunks. Long
 * lists, tables, quotes and paragraphs are cut into several blocks.
 */
export class BlockSplitter {
  /** Source from the beginning of the open block; empty inside a fence. */
  #open = "";
  #fence: OpenFence | undefined;
  /** The number of the first item, if `#open` continues an ordered list. */
  #start: number | undefined;
  /** Where the complete lines of `#open` ended when nothing of it could be closed. */
  #waiting = 0;
  /** A carriage return at the end, to which a line feed may belong. */
  #carriageReturn = "";

  /** Appends text, and returns the blocks that it has closed. */
  push(text: string): MarkdownBlock[] {
    const all = this.#carriageReturn + text;
    this.#carriageReturn = all.endsWith("\r") ? "\r" : "";
    const complete = all.slice(0, all.length - this.#carriageReturn.length);
    let added = complete.replace(/\r\n?/g, "\n").replaceAll("\0", "\uFFFD");
    const closed: MarkdownBlock[] = [];
    for (;;) {
      if (this.#fence) {
        const rest = this.#fence.push(added);
        if (rest === undefined) return closed;
        closed.push(this.#fence.block);
        this.#fence = undefined;
        added = rest;
      }
      this.#open += added;
      added = "";
      if (!this.#closeBlocks(closed)) return closed;
      [added, this.#open] = [this.#open, ""];
    }
  }

  /** What has not been closed; undefined if there is nothing. */
  get open(): MarkdownBlock | undefined {
    if (this.#fence) return this.#fence.block;
    return this.#open.trim() === "" ? undefined : this.#block(this.#open);
  }

  #block(source: string): MarkdownBlock {
    return { kind: "markdown", source, ...(this.#start !== undefined && { start: this.#start }) };
  }

  /** Closes the blocks of `#open` that are complete. Returns true if a fence has been opened, whose code `#open` then is. */
  #closeBlocks(closed: MarkdownBlock[]): boolean {
    let length = windowLength;
    for (;;) {
      // Blank lines precede a block.
      if (/^[ \t]*\n/.test(this.#open)) {
        this.#open = this.#open.replace(/^(?:[ \t]*\n)+/, "");
        this.#waiting = 0;
      }
      const { starts, longLine } = completeLines(this.#open, length);
      const end = starts.at(-1) ?? 0;
      if (end === this.#waiting && longLine === undefined && this.#open.length <= length) return false;
      if (end > 0) {
        const parsed = parseBlocks(this.#open.slice(0, end));
        if (parsed[0]?.token.type === "fence" && this.#openFence()) return true;
        if (this.#closeFirst(parsed, starts, closed)) {
          length = windowLength;
          this.#waiting = 0;
          continue;
        }
      }
      if (longLine !== undefined) {
        this.#open = `${this.#open.slice(0, longLine)}\n${this.#open.slice(longLine)}`;
        continue;
      }
      if (length < maxBlockLength && this.#open.length > length) {
        length *= 2;
        continue;
      }
      const cut = starts.find((start) => start >= maxBlockLength);
      if (cut === undefined) {
        this.#waiting = end;
        return false;
      }
      this.#close(cut, closed);
    }
  }

  /** Closes blocks up to the first that has to be cut, or to the last one. Returns whether any was closed. */
  #closeFirst(parsed: readonly ParsedBlock[], starts: readonly number[], closed: MarkdownBlock[]): boolean {
    let taken = 0;
    for (const [at, block] of parsed.entries()) {
      const from = starts[block.line] ?? 0;
      const next = parsed[at + 1];
      const cut = cutOf(block, starts);
      if (cut) {
        const header = this.#open.slice(from, starts[block.line + (cut.headerLines ?? 0)]);
        const source = this.#open.slice(taken, cut.at);
        const first = this.#start ?? cut.firstItem;
        closed.push(this.#block(source));
        this.#open = header + this.#open.slice(cut.at);
        this.#start = cut.items === undefined || first === undefined ? undefined : first + cut.items;
        return true;
      }
      // A fence is read line by line, wherever it begins.
      if (!next || block.token.type === "fence") break;
      const end = starts[next.line] ?? 0;
      closed.push(this.#block(this.#open.slice(taken, end)));
      this.#start = undefined;
      taken = end;
    }
    this.#open = this.#open.slice(taken);
    return taken > 0;
  }

  #close(end: number, closed: MarkdownBlock[]): void {
    closed.push(this.#block(this.#open.slice(0, end)));
    this.#open = this.#open.slice(end);
    this.#start = undefined;
    this.#waiting = 0;
  }

  #openFence(): boolean {
    const found = /^( {0,3})(`{3,}(?!`)|~{3,}(?!~))([^\n]*)\n/.exec(this.#open);
    if (!found) return false;
    const [line, indent = "", marker = "", info = ""] = found;
    this.#fence = new OpenFence(indent.length, marker, info);
    this.#open = this.#open.slice(line.length);
    this.#start = undefined;
    this.#waiting = 0;
    return true;
  }
}

/**
 * Where the complete lines begin, up to `length` characters, and where the last of them ends. They stop before a line that is too long:
 * `longLine` is where to break it, if it is the first one or nothing before it can be closed.
 */
function completeLines(text: string, length: number): { readonly starts: number[]; readonly longLine?: number } {
  const starts = [0];
  for (let from = 0; from < length;) {
    const end = text.indexOf("\n", from);
    if ((end === -1 ? text.length : end) - from > maxLineLength) {
      const space = text.lastIndexOf(" ", from + maxLineLength - 1);
      return { starts, longLine: space > from ? space + 1 : characterEnd(text, from + maxLineLength) };
    }
    if (end === -1) break;
    from = end + 1;
    starts.push(from);
  }
  return { starts };
}

/** Returns `at`, or the offset before if `at` is inside a surrogate pair. */
function characterEnd(text: string, at: number): number {
  return (text.codePointAt(at - 1) ?? 0) > 0xffff ? at - 1 : at;
}

/** A block at the top level. */
interface ParsedBlock {
  readonly token: Token;
  /** Its first line, and the line after its last. */
  readonly line: number;
  readonly end: number;
  /** The tokens inside. */
  readonly inner: readonly Token[];
}

function parseBlocks(source: string): ParsedBlock[] {
  const tokens: Token[] = [];
  markdown.block.parse(source, markdown, {}, tokens);
  const blocks: (ParsedBlock & { inner: Token[] })[] = [];
  for (const token of tokens) {
    if (token.level === 0 && token.nesting >= 0 && token.type !== "inline" && token.map)
      blocks.push({ token, line: token.map[0], end: token.map[1], inner: [] });
    else blocks.at(-1)?.inner.push(token);
  }
  return blocks;
}

interface Cut {
  /** Offset of the first character after the cut. */
  readonly at: number;
  /** Lines that are repeated after the cut: the header of a table. */
  readonly headerLines?: number;
  /** The number of the first item of an ordered list, and how many items precede the cut. */
  readonly firstItem?: number;
  readonly items?: number;
}

/** Where to cut a block that is too long; undefined if it is not, or cannot be cut. */
function cutOf({ token, line, end, inner }: ParsedBlock, starts: readonly number[]): Cut | undefined {
  const from = starts[line] ?? 0;
  if ((starts[end] ?? 0) - from <= blockLength) return undefined;
  const isFar = (at: number): boolean => at > line && (starts[at] ?? 0) - from >= blockLength;
  const cutBefore = (at: number | undefined): Cut | undefined =>
    at === undefined ? undefined : { at: starts[at] ?? 0 };
  const firstLineOf = (type: string | undefined, level: number): number[] =>
    inner.flatMap((each) =>
      each.level === level && each.nesting >= 0 && each.map && (type === undefined || each.type === type)
        ? [each.map[0]]
        : [],
    );
  switch (token.type) {
    case "paragraph_open":
    case "heading_open": {
      // The last line of a heading is its underline.
      const last = token.type === "paragraph_open" ? end - 1 : end - 2;
      const at = starts.findIndex((_, index) => isFar(index));
      return at !== -1 && at <= last ? cutBefore(at) : undefined;
    }
    case "bullet_list_open":
      return cutBefore(firstLineOf("list_item_open", 1).find(isFar));
    case "ordered_list_open": {
      const items = firstLineOf("list_item_open", 1);
      const at = items.findIndex(isFar);
      const cut = cutBefore(items[at]);
      return cut && { ...cut, firstItem: Number(token.attrGet("start") ?? 1), items: at };
    }
    case "blockquote_open":
      return cutBefore(firstLineOf(undefined, 1).find(isFar));
    case "table_open": {
      const rows = firstLineOf("tr_open", 2).slice(1);
      const count = rows.findIndex((at) => at > line + 2 && isFar(at));
      const cut = cutBefore(rows[count]);
      const header = (starts[line + 2] ?? 0) - from;
      const columns = inner.findIndex(({ type }) => type === "thead_close") / 3;
      // The library adds cells to rows that have too few. A hostile table would have a million empty cells.
      const isFull = cut && cut.at - from - header >= count * columns;
      return cut && { ...cut, ...(header <= maxHeaderLength && isFull && { headerLines: 2 }) };
    }
    default:
      return undefined;
  }
}
