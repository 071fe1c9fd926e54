import { Cursor, isSpace, notYet, type Parser } from "./cursor.ts";
import { type ArgumentSink, escapeCharacters, isHex } from "./json-scan.ts";
import { MarkerSet, matchMarker, mayStart, readName } from "./marker-set.ts";

/** How values are written that are not quite JSON. */
export interface LiteralStyle {
  /** Reads a value without quotes. `space`: the white space before it. */
  word(cursor: Cursor, space: string, sink: ArgumentSink): Parser<boolean>;
  /** Absent: strings are closed and keys are quoted, as in Python and JSON. */
  readonly loose?: LooseStyle;
}

/** Keys have no quotes, and brackets that are open at the end of the call are closed. */
interface LooseStyle {
  /** The format's own quote tokens. */
  readonly quotes: MarkerSet;
  /** Reads a string after such a token, and the token that closes it. */
  rawString(cursor: Cursor, quote: string, sink: ArgumentSink, depth: number): Parser<boolean>;
  /** Whether the call ends at the cursor, with or without closing brackets. */
  atEnd(cursor: Cursor): Parser<boolean>;
}

/** Python's and JSON's literals. */
export const python: LiteralStyle = { word: (cursor, _space, sink) => readWord(cursor, sink) };

/** Maximum nesting: bounds the work that one chunk may cost. */
const maxDepth = 100;
/** Maximum length of a key or word. */
const maxWordLength = 1000;

/**
 * Reads one value and writes it as JSON as it arrives. Returns false, with the cursor at the offending character, if it is not a value;
 * what was written by then is the beginning of a JSON value.
 */
export function* readLiteral(cursor: Cursor, style: LiteralStyle, sink: ArgumentSink, depth = 0): Parser<boolean> {
  const here = cursor.code();
  // Only a string without quotes includes the white space, so no more than a little is kept.
  const space = here === notYet || isSpace(here) ? yield* cursor.readSpace(maxWordLength) : "";
  let code = cursor.code();
  if (code === notYet) code = yield* cursor.peek();
  if (style.loose && mayStart(style.loose.quotes, code)) {
    const quote = yield* readQuote(cursor, style.loose);
    if (quote !== undefined) return yield* style.loose.rawString(cursor, quote, sink, depth);
  }
  if (code === 34 || code === 39) return yield* readQuoted(cursor, code, sink);
  if (code === 123 || code === 91 || code === 40) {
    if (depth === maxDepth) return false;
    cursor.pos++;
    return code === 123
      ? yield* readMembers(cursor, style, sink, depth + 1)
      : yield* readItems(cursor, style, sink, depth + 1, code === 91 ? 93 : 41);
  }
  return yield* style.word(cursor, space, sink);
}

/** Reads one of the format's own quote tokens; undefined if there is none. */
function* readQuote(cursor: Cursor, { quotes }: LooseStyle): Parser<string | undefined> {
  return quotes.markers[yield* matchMarker(cursor, quotes)];
}

/** Reads the members of an object after its `{`, and the `}`. */
export function* readMembers(cursor: Cursor, style: LiteralStyle, sink: ArgumentSink, depth: number): Parser<boolean> {
  for (let first = true; ; first = false) {
    let code = cursor.skipAvailableSpace();
    if (code === notYet) code = yield* cursor.skipSpace();
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
      sink.json(first ? "{}" : "}");
      return true;
    }
    const key = yield* readKey(cursor, style);
    code = cursor.skipAvailableSpace();
    if (code === notYet) code = yield* cursor.skipSpace();
    if (key === null || code !== 58) return false;
    cursor.pos++;
    sink.json(`${first ? "{" : ","}${JSON.stringify(key)}:`);
    if (!(yield* readLiteral(cursor, style, sink, depth))) return false;
  }
}

function* readKey(cursor: Cursor, style: LiteralStyle): Parser<string | null> {
  let code = cursor.skipAvailableSpace();
  if (code === notYet) code = yield* cursor.skipSpace();
  const mayBeQuote = style.loose && mayStart(style.loose.quotes, code);
  const quote = mayBeQuote ? yield* readQuote(cursor, style.loose) : undefined;
  if (quote !== undefined) {
    const key = yield* readName(cursor, new MarkerSet([quote]), maxWordLength, () => false);
    return key && key.text;
  }
  if (code === 34 || code === 39) return yield* readQuotedKey(cursor, code);
  let key = "";
  for (;;) {
    let next = cursor.code();
    if (next === notYet) next = yield* cursor.peek();
    if (next < 0 || isSpace(next) || next === 58 || next === 44 || next === 123 || next === 125) break;
    if (key.length > maxWordLength) return null;
    key += cursor.text[cursor.pos];
    cursor.pos++;
  }
  return key === "" || !style.loose ? null : key;
}

/** Reads a key in quotes, which is needed as a whole. */
function* readQuotedKey(cursor: Cursor, quote: number): Parser<string | null> {
  let text = "";
  let escaped = false;
  for (;;) {
    const code = yield* cursor.peek();
    if (code < 0 || text.length > maxWordLength) return null;
    text += cursor.text[cursor.pos];
    cursor.pos++;
    if (code === quote && !escaped && text.length > 1) break;
    escaped = code === 92 && !escaped;
  }
  const json = literalToJson(text);
  return json === null ? null : String(JSON.parse(json));
}

/** Converts a complete Python or JSON literal to JSON. Returns null if the text is not a literal. */
export function literalToJson(text: string): string | null {
  const cursor = new Cursor();
  cursor.feed(text);
  cursor.ended = true;
  let json = "";
  const sink: ArgumentSink = {
    write: (part) => void (json += part),
    json: (part) => {
      json += part;
      cursor.take();
    },
  };
  const result = readLiteral(cursor, python, sink).next();
  return result.done === true && result.value && cursor.pos === cursor.text.length ? json : null;
}

/** Reads the items of a list or tuple after its opening bracket, and the closing bracket `end`. */
function* readItems(
  cursor: Cursor,
  style: LiteralStyle,
  sink: ArgumentSink,
  depth: number,
  end: number,
): Parser<boolean> {
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

/** Reads a string of Python or JSON in `"` or `'`, or in three of them. */
function* readQuoted(cursor: Cursor, quote: number, sink: ArgumentSink): Parser<boolean> {
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
  /** Number of quotes that may be the first of three. */
  let quotes = 0;
  yield* cursor.repeat(() => {
    const { text } = cursor;
    let json = "";
    let i = cursor.pos;
    while (i < text.length && !closed) {
      const code = text.charCodeAt(i);
      if (escape !== "") {
        escape += text[i];
        const converted = convertEscape(escape);
        if (converted !== null) {
          json += converted;
          // A character that is no hexadecimal digit ends a numeric escape without being part of it.
          if (escape.length > 2 && !isHex(code)) i--;
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
        i = endOfUnchanged(text, i, quote);
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

/** The end of the text that is the same in a JSON string, most escapes included. */
function endOfUnchanged(text: string, from: number, quote: number): number {
  let i = from;
  for (; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 92 && i + 1 < text.length && sameEscapes.includes(text[i + 1] ?? "")) i++;
    else if (code === 92 || code === quote || code === 34 || code < 32) return i;
  }
  return i;
}

/** The characters after the backslash of escapes that are the same in Python and JSON. */
const sameEscapes = '"\\/bfnrt';

/**
 * Converts an escape to the inside of a JSON string. Returns null while the escape is incomplete. As in Python, an unknown escape keeps its
 * backslash.
 */
function convertEscape(escape: string): string | null {
  const character = escape[1] ?? "";
  if (character === "u" || character === "x") {
    if (escape.length === 2) return null;
    if (!isHex(escape.charCodeAt(escape.length - 1))) return `\\\\${escape.slice(1, -1)}`;
    return escape.length < (character === "u" ? 6 : 4) ? null : `\\u${escape.slice(2).padStart(4, "0")}`;
  }
  if (sameEscapes.includes(character)) return escape;
  if (character === "'") return "'";
  if (character === "\n") return "";
  return `\\\\${escapeCharacters(character)}`;
}

/** Reads a number or a literal name. It is written only when complete, because it may turn out invalid. */
function* readWord(cursor: Cursor, sink: ArgumentSink): Parser<boolean> {
  let word = "";
  for (;;) {
    const code = yield* cursor.peek();
    if (code < 0 || !/[\w.+-]/.test(String.fromCharCode(code)) || word.length > maxWordLength) break;
    word += cursor.text[cursor.pos];
    cursor.pos++;
  }
  const json = literalWord(word);
  if (json === null) return false;
  sink.json(json);
  return true;
}

const words: Readonly<Record<string, string>> = {
  True: "true",
  False: "false",
  None: "null",
  true: "true",
  false: "false",
  null: "null",
};
const pythonNumber = /^[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/;
const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

/** The JSON of a number or a literal name of Python or JSON; null if the word is neither. */
export function literalWord(word: string): string | null {
  if (Object.hasOwn(words, word)) return words[word] ?? null;
  if (!pythonNumber.test(word)) return null;
  const plain = word.replaceAll("_", "");
  return jsonNumber.test(plain) ? plain : JSON.stringify(Number(plain));
}
