import { space, stripSpaceAtEnd } from "./python-strings.ts";
import { readEscapes } from "./read-escapes.ts";
import { TemplateSyntaxError } from "./template-syntax-error.ts";

/** A piece of a template's source. */
export interface Token {
  readonly kind: TokenKind;
  /** The token as it is written; of a string, its value. */
  readonly text: string;
  /** Its offset in the source, in UTF-16 units. */
  readonly start: number;
}

/** `end`: the source ends here. */
export type TokenKind = "text" | TagStart | TagEnd | "name" | "string" | "integer" | "float" | "operator" | "end";
export type TagStart = "{{" | "{%";
export type TagEnd = "}}" | "%}";

/** A template's tokens, with the source to which their offsets refer. */
export interface Tokens {
  readonly source: string;
  readonly tokens: readonly Token[];
}

/**
 * Cuts a template into tokens by the rules of Jinja's lexer (jinja.palletsprojects.com, "Template Designer Documentation"), with
 * `trim_blocks` and `lstrip_blocks` on, as transformers runs chat templates: white space before a block or comment at the start of a
 * line goes, and so does the line end after it. Throws `TemplateSyntaxError`.
 */
export function tokenize(template: string): Tokens {
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

  /** Where the template goes on after a comment. */
  function commentEnd(tag: Tag): number {
    const close = source.indexOf("#}", tag.end);
    if (close === -1) fail("the comment has no end '#}'", tag.start);
    return tagEnd(close > tag.end ? source.charAt(close - 1) : "", close + 2);
  }

  /** Adds the text of a raw block. */
  function rawEnd(tag: Tag): number {
    endRaw.lastIndex = tag.end;
    const close = endRaw.exec(source);
    if (close === null) fail("the raw block has no '{% endraw %}'", tag.start);
    const [whole, sign = "", endSign = ""] = close;
    const text = source.slice(tag.end, close.index);
    add("text", textBefore({ kind: "raw", sign }, text, startsLine(source, tag.end)), tag.end);
    return tagEnd(endSign, close.index + whole.length);
  }

  /** Adds the tokens of a tag. The tag ends outside of all brackets only: inside, `}}` closes two of them. */
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
        // A statement's line end goes with it, that of an expression stays.
        if (kind === "{%") return tagEnd(close.text.charAt(0), close.end);
        return close.text.startsWith("-") ? afterSpace(close.end) : close.end;
      }
      here = tagToken(here, open);
    }
  }

  /** Adds one token of a tag and says where it ends. */
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

  /** Where the template goes on after a block or comment that ends with this sign. */
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
  /** Directly behind the start: "-" strips white space, "+" keeps it, "" goes by the rules. */
  readonly sign: string;
  readonly start: number;
  /** Where the tag's inside begins; that of a raw block, where its text does. */
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
