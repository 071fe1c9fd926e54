import { awaited, Cursor, isSpace, type Reading } from "./cursor.ts";
import { type ArgumentSink, escapeCharacters } from "./json-scan.ts";
import { MarkerSet, matchMarker } from "./marker-set.ts";

/** How values are written that are not quite JSON. */
export interface LiteralStyle {
  /** Reads a value without quotes; `space` stood before it. */
  word(cursor: Cursor, space: string, sink: ArgumentSink): Reading<boolean>;
  /** Absent: strings are closed and keys are quoted, as in Python and JSON. */
  readonly loose?: LooseStyle;
}

/** Keys have no quotes, and what is open at the end of the call is closed. */
export interface LooseStyle {
  /** The quote tokens of the format's own. */
  readonly quotes: MarkerSet;
  /** Reads a string behind such a token, and the token behind it. */
  rawString(cursor: Cursor, quote: string, sink: ArgumentSink, depth: number): Reading<boolean>;
  /** Whether the call ends here, brackets or not. */
  atEnd(cursor: Cursor): Reading<boolean>;
}

/** Python's and JSON's literals. */
export const python: LiteralStyle = { word: (cursor, _space, sink) => readWord(cursor, sink) };

/** Deeper is no value: it bounds the work that a chunk may cost. */
const deepest = 100;

/**
 * Reads one value and writes it as JSON, as it comes. Gives false, with the cursor at the fault, if it is not a value; what went out by then
 * is a beginning of JSON.
 */
export function* readLiteral(cursor: Cursor, style: LiteralStyle, sink: ArgumentSink, depth = 0): Reading<boolean> {
  const here = cursor.now();
  const space = here === awaited || isSpace(here) ? yield* passSpace(cursor) : "";
  let code = cursor.now();
  if (code === awaited) code = yield* cursor.peek();
  if (style.loose && style.loose.quotes.child(0, code) >= 0) {
    const quote = yield* passQuote(cursor, style.loose);
    if (quote !== null) return yield* style.loose.rawString(cursor, quote, sink, depth);
  }
  if (code === 34 || code === 39) return yield* readQuoted(cursor, code, sink);
  if (code === 123 || code === 91 || code === 40) {
    if (depth === deepest) return false;
    cursor.pos++;
    return code === 123
      ? yield* readMembers(cursor, style, sink, depth + 1)
      : yield* readItems(cursor, style, sink, depth + 1, code);
  }
  return yield* style.word(cursor, space, sink);
}

/** Passes a quote token of the format's own, if there is one here, and gives it. */
function* passQuote(cursor: Cursor, { quotes }: LooseStyle): Reading<string | null> {
  const found = yield* matchMarker(cursor, quotes);
  return quotes.markers[found] ?? null;
}

/** White space before a value; only a string without quotes needs it, so more than a little of it is not kept. */
function* passSpace(cursor: Cursor): Reading<string> {
  let space = "";
  for (;;) {
    const code = yield* cursor.peek();
    if (code < 0 || !isSpace(code)) return space;
    if (space.length < longestWord) space += String.fromCharCode(code);
    cursor.pos++;
  }
}

/** Reads the members of an object behind its `{`, and the `}`. */
export function* readMembers(cursor: Cursor, style: LiteralStyle, sink: ArgumentSink, depth: number): Reading<boolean> {
  for (let first = true; ; first = false) {
    let code = cursor.skipSpaceNow();
    if (code === awaited) code = yield* cursor.skipSpace();
    if (!first && code === 44) {
      cursor.pos++;
      code = yield* cursor.skipSpace();
    } else if (!first && code !== 125) {
      if (!style.loose || !(yield* style.loose.atEnd(cursor))) return false;
      sink.json("}");
      return true;
    }
    if (code === 125) {
      cursor.pos++;
      sink.json(`${first ? "{" : ""}}`);
      return true;
    }
    const key = yield* readKey(cursor, style);
    code = cursor.skipSpaceNow();
    if (code === awaited) code = yield* cursor.skipSpace();
    if (key === null || code !== 58) return false;
    cursor.pos++;
    sink.json(`${first ? "{" : ","}${JSON.stringify(key)}:`);
    if (!(yield* readLiteral(cursor, style, sink, depth))) return false;
  }
}

function* readKey(cursor: Cursor, style: LiteralStyle): Reading<string | null> {
  let code = cursor.skipSpaceNow();
  if (code === awaited) code = yield* cursor.skipSpace();
  const mayQuote = style.loose && style.loose.quotes.child(0, code) >= 0;
  const quote = mayQuote ? yield* passQuote(cursor, style.loose) : null;
  if (quote !== null) return yield* collectTo(cursor, quote);
  if (code === 34 || code === 39) return yield* readQuotedKey(cursor, code);
  let key = "";
  for (;;) {
    let next = cursor.now();
    if (next === awaited) next = yield* cursor.peek();
    if (next < 0 || isSpace(next) || next === 58 || next === 44 || next === 123 || next === 125) break;
    if (key.length > longestWord) return null;
    key += cursor.text[cursor.pos];
    cursor.pos++;
  }
  return key === "" || !style.loose ? null : key;
}

/** A key in quotes. It is wanted as a whole, so it is gathered first. */
function* readQuotedKey(cursor: Cursor, quote: number): Reading<string | null> {
  let text = "";
  let escaped = false;
  for (;;) {
    const code = yield* cursor.peek();
    if (code < 0 || text.length > longestWord) return null;
    text += cursor.text[cursor.pos];
    cursor.pos++;
    if (code === quote && !escaped && text.length > 1) break;
    escaped = code === 92 && !escaped;
  }
  const json = literalToJson(text);
  if (json === null) return null;
  const value: unknown = JSON.parse(json);
  return String(value);
}

/** A whole literal as JSON; null: it is not a literal. */
export function literalToJson(text: string): string | null {
  const cursor = new Cursor();
  cursor.feed(text);
  cursor.ended = true;
  const words = new Words(cursor);
  const good = readLiteral(cursor, python, words).next();
  return good.done === true && good.value && cursor.pos === cursor.text.length ? words.text : null;
}

/** Text up to a quote, which is passed. */
function* collectTo(cursor: Cursor, quote: string): Reading<string | null> {
  let text = "";
  const set = new MarkerSet([quote]);
  for (;;) {
    const code = yield* cursor.peek();
    if (code < 0 || text.length > longestWord) return null;
    if (set.child(0, code) >= 0 && (yield* matchMarker(cursor, set)) >= 0) return text;
    text += cursor.text[cursor.pos];
    cursor.pos++;
  }
}

function* readItems(
  cursor: Cursor,
  style: LiteralStyle,
  sink: ArgumentSink,
  depth: number,
  open: number,
): Reading<boolean> {
  const end = open === 91 ? 93 : 41;
  for (let first = true; ; first = false) {
    let code = yield* cursor.skipSpace();
    if (!first && code === 44) {
      cursor.pos++;
      code = yield* cursor.skipSpace();
      if (code !== end) sink.json(",");
    } else if (!first && code !== end) {
      if (!style.loose || !(yield* style.loose.atEnd(cursor))) return false;
      sink.json("]");
      return true;
    }
    if (code === end) {
      cursor.pos++;
      sink.json(first ? "[]" : "]");
      return true;
    }
    if (first) sink.json("[");
    if (!(yield* readLiteral(cursor, style, sink, depth))) return false;
  }
}

/** A string in `"` or `'`, Python's or JSON's; three of them quote as well. */
function* readQuoted(cursor: Cursor, quote: number, sink: ArgumentSink): Reading<boolean> {
  cursor.pos++;
  let triple = false;
  if ((yield* cursor.peek()) === quote) {
    cursor.pos++;
    if ((yield* cursor.peek()) !== quote) {
      sink.json('""');
      return true;
    }
    cursor.pos++;
    triple = true;
  }
  sink.json('"');
  let closed = false;
  /** The beginning of an escape. */
  let escape = "";
  /** Quotes that may be the first of three. */
  let quotes = 0;
  yield* cursor.repeat(() => {
    const { text } = cursor;
    let json = "";
    let i = cursor.pos;
    while (i < text.length && !closed) {
      const code = text.charCodeAt(i);
      if (escape !== "") {
        escape += text[i];
        const meaning = meaningOf(escape);
        if (meaning !== null) {
          json += meaning;
          // A character that is no hexadecimal digit ends a numeric escape and does not belong to it.
          if (escape.length > 2 && !isHexadecimal(code)) i--;
          escape = "";
        }
        i++;
      } else if (code === quote) {
        quotes++;
        i++;
        closed = quotes === (triple ? 3 : 1);
      } else {
        if (quotes > 0) json += escapeCharacters(String.fromCharCode(quote).repeat(quotes));
        quotes = 0;
        const from = i;
        i = behindSame(text, i, quote);
        json += text.slice(from, i);
        if (i === text.length || text.charCodeAt(i) === quote) continue;
        if (text.charCodeAt(i) === 92) escape = "\\";
        else json += escapeCharacters(text[i] ?? "");
        i++;
      }
    }
    cursor.pos = i;
    sink.write(json, cursor.take());
    return !closed;
  });
  if (closed) sink.json('"');
  return closed;
}

/** How far the text of a string stands in JSON as it stands here, most escapes included. */
function behindSame(text: string, from: number, quote: number): number {
  let i = from;
  for (; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 92 && i + 1 < text.length && sameEscapes.includes(text[i + 1] ?? "")) i++;
    else if (code === 92 || code === quote || code === 34 || code < 32) return i;
  }
  return i;
}

/** What stands behind the backslash of escapes that mean the same in Python and in JSON, and are complete. */
const sameEscapes = '"\\/bfnrt';

/**
 * What an escape means, as the inside of a JSON string; null while it is not complete. Python keeps the backslash of an escape that it
 * does not know.
 */
function meaningOf(escape: string): string | null {
  const character = escape[1] ?? "";
  if (character === "u" || character === "x") {
    if (escape.length === 2) return null;
    const whole = character === "u" ? 6 : 4;
    if (!isHexadecimal(escape.charCodeAt(escape.length - 1))) return `\\\\${escape.slice(1, -1)}`;
    return escape.length < whole ? null : `\\u${escape.slice(2).padStart(4, "0")}`;
  }
  if (sameEscapes.includes(character)) return escape;
  if (character === "'") return "'";
  if (character === "\n") return "";
  return `\\\\${escapeCharacters(character)}`;
}

function isHexadecimal(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 65 && code <= 70) || (code >= 97 && code <= 102);
}

const words: Readonly<Record<string, string>> = {
  True: "true",
  False: "false",
  None: "null",
  true: "true",
  false: "false",
  null: "null",
};
const number = /^[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/;
const longestWord = 1000;

/** A number or a word that stands for a value. It goes out whole: it may not be one. */
function* readWord(cursor: Cursor, sink: ArgumentSink): Reading<boolean> {
  let word = "";
  for (;;) {
    const code = yield* cursor.peek();
    if (code < 0 || !/[\w.+-]/.test(String.fromCharCode(code)) || word.length > longestWord) break;
    word += cursor.text[cursor.pos];
    cursor.pos++;
  }
  const json = literalWord(word);
  if (json === null) return false;
  sink.json(json);
  return true;
}

/** The JSON of a number, or of a word that stands for a value; null: it is neither. */
export function literalWord(word: string): string | null {
  if (Object.hasOwn(words, word)) return words[word] ?? null;
  return number.test(word) ? jsonNumber(word) : null;
}

/** Python's spelling of a number as JSON's. */
function jsonNumber(word: string): string {
  const plain = word.replaceAll("_", "");
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(plain) ? plain : JSON.stringify(Number(plain));
}

/** Gathers JSON instead of sending it. */
export class Words implements ArgumentSink {
  text = "";
  readonly #cursor: Cursor;

  constructor(cursor: Cursor) {
    this.#cursor = cursor;
  }

  write(json: string): void {
    this.text += json;
  }

  json(text: string): void {
    this.text += text;
    this.#cursor.take();
  }

  characters(kept: number): void {
    this.text += escapeCharacters(this.#cursor.take(kept));
  }
}
