import { space, stripSpaceAtEnd } from "./python-strings.ts";

/** A token of a template's source. */
export interface Token {
  readonly kind: TokenKind;
  /** The source of the token; for a string, its value. */
  readonly text: string;
  /** Its offset in the source, in UTF-16 units. */
  readonly start: number;
}

/** `end` follows the last token. */
export type TokenKind = "text" | TagStart | TagEnd | "name" | "string" | "integer" | "float" | "operator" | "end";
export type TagStart = "{{" | "{%";
export type TagEnd = "}}" | "%}";

/** A template's tokens, with the source to which their offsets refer. */
export interface Tokens {
  readonly source: string;
  readonly tokens: readonly Token[];
}

/**
 * Tokenizes a template by the rules of Jinja's lexer (jinja.palletsprojects.com, "Template Designer Documentation") with `trim_blocks` and
 * `lstrip_blocks`, which transformers uses for chat templates: white space before a block or comment at the start of a line is removed,
 * and so is the line end after it. Throws `TemplateSyntaxError`.
 */
export function tokenizeTemplate(template: string): Tokens {
  const source = template.replace(/\r\n?/g, "\n").replace(/\n$/, "");
  const tokens: Token[] = [];
  let at = 0;
  while (at < source.length) {
    const tag = tagStart(source, at);
    const text = source.slice(at, tag.start);
    add("text", tag.kind === "end" ? text : textBefore(tag, text, startsLine(source, at)), at);
    at = tag.end;
    if (tag.kind === "{#") at = commentEnd(tag);
    else if (tag.kind === "raw") at = rawEnd(tag);
    else if (tag.kind !== "end") at = tagTokens(tag, tag.kind);
  }
  add("end", "end of template", source.length);
  return { source, tokens };

  function add(kind: TokenKind, text: string, start: number): void {
    if (kind !== "text" || text !== "") tokens.push({ kind, text, start });
  }

  function fail(problem: string, offset: number): never {
    throw new TemplateSyntaxError(problem, source, offset);
  }

  /** Returns the offset after a comment. */
  function commentEnd(tag: Tag): number {
    const close = source.indexOf("#}", tag.end);
    if (close === -1) fail("the comment has no end '#}'", tag.start);
    return tagEnd(close > tag.end ? source.charAt(close - 1) : "", close + 2);
  }

  /** Adds the text of a raw block, and returns the offset after it. */
  function rawEnd(tag: Tag): number {
    endRaw.lastIndex = tag.end;
    const close = endRaw.exec(source);
    if (close === null) fail("the raw block has no '{% endraw %}'", tag.start);
    const [whole, sign = "", endSign = ""] = close;
    const text = source.slice(tag.end, close.index);
    add("text", textBefore({ kind: "raw", sign }, text, startsLine(source, tag.end)), tag.end);
    return tagEnd(endSign, close.index + whole.length);
  }

  /** Adds the tokens of a tag, and returns the offset after it. Inside brackets, `}}` closes two of them, not the tag. */
  function tagTokens(tag: Tag, kind: TagStart): number {
    const end = kind === "{{" ? "}}" : "%}";
    const open: string[] = [];
    add(kind, kind, tag.start);
    for (let here = tag.end; ;) {
      here = match(spaces, source, here)?.end ?? here;
      if (here >= source.length) return here;
      const close = open.length === 0 ? match(tagEnds[end], source, here) : null;
      if (close !== null) {
        add(end, end, here);
        // The line end after a statement is removed, not that after an expression.
        if (kind === "{%") return tagEnd(close.text.charAt(0), close.end);
        return close.text.startsWith("-") ? afterSpace(close.end) : close.end;
      }
      here = tagToken(here, open);
    }
  }

  /** Adds one token of a tag, and returns the offset after it. */
  function tagToken(start: number, open: string[]): number {
    for (const [kind, pattern] of tagPatterns) {
      const found = match(pattern, source, start);
      if (found === null) continue;
      if (kind === "operator") balance(found.text, open, start);
      if (kind === "name" && !/^[\p{ID_Start}_]/u.test(found.text)) fail(`'${found.text}' is not a name`, start);
      add(kind, found.text, start);
      return found.end;
    }
    const quote = source.charAt(start);
    if (quote !== "'" && quote !== '"') fail(`unexpected character '${characterAt(source, start)}'`, start);
    let end = start + 1;
    while (end < source.length && source.charAt(end) !== quote) end += source.charAt(end) === "\\" ? 2 : 1;
    if (end >= source.length) fail("the string has no end", start);
    const text = readEscapes(source.slice(start + 1, end), (problem) => fail(problem, start));
    add("string", text, start);
    return end + 1;
  }

  function balance(operator: string, open: string[], start: number): void {
    const closing = closingOf[operator];
    if (closing !== undefined) open.push(closing);
    if (!")]}".includes(operator)) return;
    const expected = open.pop();
    if (expected === operator) return;
    fail(expected === undefined ? `unexpected '${operator}'` : `expected '${expected}', got '${operator}'`, start);
  }

  /** Returns the offset after the white space that the end of a block or comment, with this sign, removes. */
  function tagEnd(sign: string, end: number): number {
    if (sign === "-") return afterSpace(end);
    return sign !== "+" && source.charAt(end) === "\n" ? end + 1 : end;
  }

  function afterSpace(from: number): number {
    return match(spaces, source, from)?.end ?? from;
  }
}

interface Tag {
  readonly kind: TagStart | "{#" | "raw" | "end";
  /** After the opening characters: "-" strips white space, "+" keeps it, "" applies `lstrip_blocks`. */
  readonly sign: string;
  readonly start: number;
  /** Offset of the first token, or of the text of a raw block. */
  readonly end: number;
}

const starts = /\{[{%#]/g;
const rawStart = new RegExp(`\\{%([-+]?)${space}*raw${space}*(?:-%\\}${space}*|%\\})`, "y");
const endRaw = new RegExp(`\\{%([-+]?)${space}*endraw${space}*([-+]?)%\\}`, "g");
const spaces = new RegExp(`${space}+`, "y");
const tagEnds: Readonly<Record<TagEnd, RegExp>> = { "}}": /-?\}\}/y, "%}": /[-+]?%\}/y };

const tagPatterns: readonly (readonly [TokenKind, RegExp])[] = [
  ["float", /(?<!\.)\d+(?:_\d+)*(?:(?:\.\d+(?:_\d+)*)?e[+-]?\d+(?:_\d+)*|\.\d+(?:_\d+)*)/iy],
  ["integer", /0b(?:_?[01]+)+|0o(?:_?[0-7]+)+|0x(?:_?[\da-f]+)+|[1-9]\d*(?:_\d+)*|0+(?:_0+)*/iy],
  ["name", /\p{ID_Continue}+/uy],
  ["operator", /\/\/|\*\*|[=!<>]=|[-+/*%~[\](){}<>=.:|,;]/y],
];

const closingOf: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };

function tagStart(source: string, from: number): Tag {
  starts.lastIndex = from;
  const start = starts.exec(source)?.index;
  if (start === undefined) return { kind: "end", sign: "", start: source.length, end: source.length };
  rawStart.lastIndex = start;
  const raw = rawStart.exec(source);
  if (raw !== null) return { kind: "raw", sign: raw[1] ?? "", start, end: start + raw[0].length };
  const kind = source.slice(start, start + 2) as TagStart | "{#";
  const sign = /[-+]/.test(source.charAt(start + 2)) ? source.charAt(start + 2) : "";
  return { kind, sign, start, end: start + 2 + sign.length };
}

/** The text before a tag, after the tag's white-space control. */
function textBefore({ kind, sign }: Pick<Tag, "kind" | "sign">, text: string, startsLine: boolean): string {
  if (sign === "-") return stripSpaceAtEnd(text);
  if (sign === "+" || kind === "{{") return text;
  const line = text.lastIndexOf("\n") + 1;
  const indentation = (line > 0 || startsLine) && stripSpaceAtEnd(text.slice(line)) === "";
  return indentation ? text.slice(0, line) : text;
}

function startsLine(source: string, at: number): boolean {
  return at === 0 || source.charAt(at - 1) === "\n";
}

/** `pattern` is sticky. */
function match(pattern: RegExp, source: string, at: number): { readonly text: string; readonly end: number } | null {
  pattern.lastIndex = at;
  const text = pattern.exec(source)?.[0];
  return text === undefined ? null : { text, end: at + text.length };
}

function characterAt(source: string, at: number): string {
  return String.fromCodePoint(source.codePointAt(at) ?? 0);
}

/** Maximum nesting of blocks and brackets. Python's compiler allows 200 brackets. */
const maxDepth = 200;

/** Reads the tokens of a template in order. */
export class TokenReader {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;
  #loopMentions = 0;

  constructor({ source, tokens }: Tokens) {
    this.#source = source;
    this.#tokens = tokens;
  }

  /** Returns the next token, or the one `offset` tokens after it; `end` after the last token. */
  peek(offset = 0): Token {
    return this.#tokens[Math.min(this.#at + offset, this.#tokens.length - 1)] ?? endOfNothing;
  }

  next(): Token {
    const token = this.peek();
    this.#at++;
    if (token.kind === "name" && token.text === "loop") this.#loopMentions++;
    return token;
  }

  /** How many times the name `loop` has been read. */
  get loopMentions(): number {
    return this.#loopMentions;
  }

  /** Whether the next token is of this kind and, if texts are given, has one of them. */
  is(kind: TokenKind, ...texts: readonly string[]): boolean {
    const token = this.peek();
    return token.kind === kind && (texts.length === 0 || texts.includes(token.text));
  }

  /** Takes the next token if it is this one. */
  skip(kind: TokenKind, text: string): boolean {
    const found = this.is(kind, text);
    if (found) this.next();
    return found;
  }

  /** Takes the next token. Throws `TemplateSyntaxError` unless it is of this kind. */
  expect(kind: TokenKind, text?: string): Token {
    if (this.peek().kind !== kind || (text !== undefined && this.peek().text !== text)) {
      this.fail(
        `expected ${text === undefined ? (tokenNames[kind] ?? `'${kind}'`) : `'${text}'`}, got ${this.shown()}`,
      );
    }
    return this.next();
  }

  /** Parses a nested block or expression, with a limit of the depth. */
  nested<T>(parse: () => T): T {
    if (++this.#depth > maxDepth) this.fail(`blocks and brackets are nested more than ${maxDepth} levels deep`);
    const parsed = parse();
    this.#depth--;
    return parsed;
  }

  /** The next token, for error messages. */
  shown(): string {
    const { kind, text } = this.peek();
    return kind === "end" ? "the end of the template" : kind === "string" ? "a string" : `'${text}'`;
  }

  fail(problem: string, { start }: Token = this.peek()): never {
    throw new TemplateSyntaxError(problem, this.#source, start);
  }
}

const endOfNothing: Token = { kind: "end", text: "", start: 0 };

const tokenNames: Partial<Record<TokenKind, string>> = { name: "a name", end: "the end of the template" };

/**
 * Returns the value of a string literal by Python's rules: unknown escapes are kept. `fail` is called with a description of an error.
 */
export function readEscapes(literal: string, fail: (problem: string) => never): string {
  if (!literal.includes("\\")) return literal;
  return literal.replace(escape, (written, octal?: string, hex?: string, letter = "") => {
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
    if (hex !== undefined) {
      const code = Number.parseInt(hex.slice(1), 16);
      if (hex.length - 1 !== digitsOf[hex.charAt(0)] || code > 0x10ffff)
        fail(`the escape '${written}' is not complete`);
      return String.fromCodePoint(code);
    }
    if (letter === "N") fail("escapes with a character's name (\\N) are not supported");
    return simpleEscapes[letter] ?? written;
  });
}

const escape = /\\(?:([0-7]{1,3})|(x[\da-fA-F]{0,2}|u[\da-fA-F]{0,4}|U[\da-fA-F]{0,8})|(.))/gs;

const digitsOf: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

const simpleEscapes: Readonly<Record<string, string>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

/** A syntax error in the source of a template. */
export class TemplateSyntaxError extends Error {
  /** Counted from 1. */
  readonly line: number;
  /** In UTF-16 units, counted from 1. */
  readonly column: number;

  /** `offset`: in UTF-16 units. */
  constructor(problem: string, source: string, offset: number) {
    const before = source.slice(0, offset).split("\n");
    const column = (before.at(-1) ?? "").length + 1;
    super(`${problem} (line ${before.length}, column ${column})`);
    this.name = "TemplateSyntaxError";
    this.line = before.length;
    this.column = column;
  }
}
