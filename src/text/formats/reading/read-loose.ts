import type { Markers, NamedCall } from "../format.ts";
import { type CallContext, type CallHead, type CallOutcome, CallWriter, failCall } from "./call-output.ts";
import { type Cursor, isSpace, type Parser } from "./cursor.ts";
import { type ArgumentSink, escapeCharacters } from "./json-scan.ts";
import { type MarkerSet, matchMarker, mayStart, readToMarker } from "./marker-set.ts";
import { literalWord, type LiteralStyle, readMembers } from "./read-literal.ts";

/** Reads arguments in loose JSON, whose `{` is at the cursor. */
export function* readLoose(
  context: CallContext,
  syntax: NamedCall,
  quotes: Markers,
  head: CallHead,
): Parser<CallOutcome> {
  const { cursor, format } = context;
  if ((yield* cursor.skipSpace()) !== 123) return "none";
  cursor.pos++;
  const call = new CallWriter(context, head);
  const tokens = format.set("quotes", () => quotes, syntax);
  const style = looseStyle(tokens, format.callCloses(syntax), (quote) =>
    format.set(quote, () => [quote, ...(syntax.close ?? [])], tokens),
  );
  const valid = yield* readMembers(cursor, style, call, 0);
  if (!valid || (cursor.cut && cursor.ended)) return yield* failCall(context, call);
  call.end("succeeded");
  return "read";
}

/** `ends`: the markers that end the call; `stringEnds`: the same, preceded by this quote token. */
function looseStyle(quotes: MarkerSet, ends: MarkerSet, stringEnds: (quote: string) => MarkerSet): LiteralStyle {
  return {
    word: (cursor, space, sink) => readBareWord(cursor, ends, space, sink),
    loose: {
      quotes,
      rawString: (cursor, quote, sink, depth) => readRawString(cursor, stringEnds(quote), sink, depth),
      *atEnd(cursor) {
        if ((yield* cursor.peek()) < 0) return true;
        const found = yield* matchMarker(cursor, ends);
        cursor.pos -= ends.length(found);
        return found >= 0;
      },
    },
  };
}

/** Reads a string after a quote token, up to the same token (the first of `ends`) or to the end of the call. */
function* readRawString(cursor: Cursor, ends: MarkerSet, sink: ArgumentSink, depth: number): Parser<boolean> {
  sink.json('"');
  // If the string is not closed, the brackets before the end of the call belong to the call.
  let brackets = "";
  const found = yield* readToMarker(cursor, ends, (raw) => {
    const text = brackets + raw;
    let end = text.length;
    while (end > 0 && text.length - end <= depth && text[end - 1] === "}") end--;
    brackets = text.slice(end);
    sink.write(escapeCharacters(text.slice(0, end)), raw);
  });
  if (found > 0) cursor.pos -= ends.length(found);
  sink.json(found === 0 ? `${brackets}"` : '"');
  return true;
}

/** Characters of a key without quotes. */
const keyCharacter = /[\p{L}\p{N}_.-]/u;
/** Maximum look-ahead for the decision about `,` and `}`. */
const maxLookAhead = 100;

/**
 * Reads a value without quotes: a number or a literal name. Anything else is a string that the model forgot to quote; it ends before
 * `, key:`, before the brackets at the end of the call, or at the end.
 */
function* readBareWord(cursor: Cursor, ends: MarkerSet, space: string, sink: ArgumentSink): Parser<boolean> {
  let word = "";
  let code = yield* cursor.peek();
  while (code >= 0 && word.length < maxLookAhead && !isSpace(code) && code !== 44 && code !== 125 && code !== 93) {
    if (mayStart(ends, code)) break;
    word += String.fromCharCode(code);
    cursor.pos++;
    code = yield* cursor.peek();
  }
  const json = literalWord(word);
  const spaces = yield* cursor.readSpace();
  code = yield* cursor.peek();
  if (json !== null && (code < 0 || code === 44 || code === 125 || code === 93 || mayStart(ends, code))) {
    sink.json(json);
    return true;
  }
  const emitText = (): void => {
    const raw = cursor.take();
    sink.write(escapeCharacters(raw), raw);
  };
  sink.json(`"${escapeCharacters(space + word + spaces)}`);
  for (;;) {
    const { text } = cursor;
    let i = cursor.pos;
    while (i < text.length && text[i] !== "," && text[i] !== "}" && !mayStart(ends, text.charCodeAt(i))) i++;
    cursor.pos = i;
    emitText();
    if (i === text.length) {
      if (cursor.ended) break;
      yield;
    } else if (yield* bareStringEnds(cursor, ends)) break;
    else {
      cursor.pos++;
      emitText();
    }
  }
  sink.json('"');
  return true;
}

/** Whether a string without quotes ends at the cursor, which is at a character that may end one. Leaves the cursor unchanged. */
function* bareStringEnds(cursor: Cursor, ends: MarkerSet): Parser<boolean> {
  const found = yield* matchMarker(cursor, ends);
  cursor.pos -= ends.length(found);
  if (found >= 0) return true;
  const code = cursor.text.charCodeAt(cursor.pos);
  cursor.keep = cursor.pos;
  const result = code === 44 ? yield* keyFollows(cursor) : code === 125 && (yield* endFollows(cursor, ends));
  cursor.pos = cursor.keep;
  cursor.keep = -1;
  return result;
}

/** The character `distance` after the look-ahead's start, or undefined if the text ends before. */
function* lookAhead(cursor: Cursor, distance: number): Parser<string | undefined> {
  while (cursor.keep + distance >= cursor.text.length && !cursor.ended) yield;
  return cursor.text[cursor.keep + distance];
}

/** Whether `key:` follows the comma at the look-ahead's start. */
function* keyFollows(cursor: Cursor): Parser<boolean> {
  let hasKey = false;
  for (let distance = 1; distance < maxLookAhead; distance++) {
    const character = yield* lookAhead(cursor, distance);
    if (character === undefined) return false;
    if (keyCharacter.test(character)) hasKey = true;
    else if (!isSpace(character.charCodeAt(0))) return character === ":" && hasKey;
  }
  return false;
}

/** Whether the end of the call follows the bracket at the look-ahead's start, after white space and further brackets. */
function* endFollows(cursor: Cursor, ends: MarkerSet): Parser<boolean> {
  for (let distance = 1; distance < maxLookAhead; distance++) {
    const character = yield* lookAhead(cursor, distance);
    if (character === undefined) return true;
    if (character === "}" || isSpace(character.charCodeAt(0))) continue;
    for (;;) {
      const rest = cursor.text.slice(cursor.keep + distance, cursor.keep + distance + maxLookAhead);
      if (ends.markers.some((marker) => rest.startsWith(marker))) return true;
      if (cursor.ended || !ends.markers.some((marker) => marker.startsWith(rest))) return false;
      yield;
    }
  }
  return false;
}
