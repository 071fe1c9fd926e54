import type { Markers, NamedCall } from "../format.ts";
import { type Cursor, isSpace, type Reading } from "./cursor.ts";
import { type ArgumentSink, escapeCharacters } from "./json-scan.ts";
import { CallAtHand, type CallDesk, type CallOutcome, failCall } from "./desk.ts";
import { type MarkerSet, matchMarker, readToMarker } from "./marker-set.ts";
import type { Head } from "./read-named-call.ts";
import { type LiteralStyle, literalWord, readMembers } from "./read-literal.ts";

/** Arguments in loose JSON; the cursor stands at their `{`. */
export function* readLoose(desk: CallDesk, call: NamedCall, quotes: Markers, head: Head): Reading<CallOutcome> {
  const { cursor, plan } = desk;
  if ((yield* cursor.skipSpace()) !== 123) return "none";
  cursor.pos++;
  const atHand = new CallAtHand(desk, head.name, head.id);
  const tokens = plan.set("quotes", () => quotes, call);
  const style = looseStyle(
    tokens,
    plan.set("close", () => call.close ?? [], call),
    (quote) => plan.set(quote, () => [quote, ...(call.close ?? [])], tokens),
  );
  const good = yield* readMembers(cursor, style, atHand, 0);
  if (!good || (cursor.cut && cursor.ended)) return yield* failCall(desk, atHand);
  atHand.end("succeeded");
  return "read";
}

/** `ends`: what ends the call; `stringEnds`: the same, and before it this quote token. */
function looseStyle(quotes: MarkerSet, ends: MarkerSet, stringEnds: (quote: string) => MarkerSet): LiteralStyle {
  return {
    word: (cursor, space, sink) => readBareWord(cursor, ends, space, sink),
    loose: {
      quotes,
      rawString: (cursor, quote, sink, depth) => readRawString(cursor, stringEnds(quote), sink, depth),
      *atEnd(cursor) {
        if ((yield* cursor.peek()) < 0) return true;
        const found = yield* matchMarker(cursor, ends);
        if (found < 0) return false;
        cursor.pos -= ends.markers[found]?.length ?? 0;
        return true;
      },
    },
  };
}

/** A string behind a quote token, up to the first of `ends`, which is the same token, or to another, which is the end of the call. */
function* readRawString(cursor: Cursor, ends: MarkerSet, sink: ArgumentSink, depth: number): Reading<boolean> {
  sink.json('"');
  // Where the string is not closed, the brackets before the call's end belong to the call.
  let brackets = "";
  const found = yield* readToMarker(cursor, ends, (kept) => {
    const raw = cursor.take(kept);
    const text = brackets + raw;
    let end = text.length;
    while (end > 0 && text.length - end <= depth && text[end - 1] === "}") end--;
    brackets = text.slice(end);
    sink.write(escapeCharacters(text.slice(0, end)), raw);
  });
  if (found > 0) cursor.pos -= ends.markers[found]?.length ?? 0;
  sink.json(found === 0 ? `${brackets}"` : '"');
  return true;
}

/** Characters of a key without quotes. */
const keyCharacter = /[\p{L}\p{N}_.-]/u;
/** What is looked at before a decision about `,` or `}` is bounded by this. */
const longestKey = 100;

/**
 * A value without quotes: a number or a word that stands for a value; anything else is a string that a model forgot to quote. It runs to
 * `, key:`, to the brackets before the call's end, or to the end.
 */
function* readBareWord(cursor: Cursor, ends: MarkerSet, space: string, sink: ArgumentSink): Reading<boolean> {
  let word = "";
  let code = yield* cursor.peek();
  while (code >= 0 && word.length < longestKey && !isSpace(code) && code !== 44 && code !== 125 && code !== 93) {
    if (ends.child(0, code) >= 0) break;
    word += String.fromCharCode(code);
    cursor.pos++;
    code = yield* cursor.peek();
  }
  const json = literalWord(word);
  const spaces = yield* passSpace(cursor);
  code = yield* cursor.peek();
  if (json !== null && (code < 0 || code === 44 || code === 125 || code === 93 || ends.child(0, code) >= 0)) {
    sink.json(json);
    return true;
  }
  sink.json(`"${escapeCharacters(space + word + spaces)}`);
  for (;;) {
    let i = cursor.pos;
    const { text } = cursor;
    while (i < text.length && !maybeEnd(text.charCodeAt(i), ends)) i++;
    cursor.pos = i;
    sink.characters(0);
    if (i === text.length) {
      if (cursor.ended) break;
      yield;
      continue;
    }
    const ended = yield* bareStringEnds(cursor, ends, sink);
    if (ended) break;
  }
  sink.json('"');
  return true;
}

function maybeEnd(code: number, ends: MarkerSet): boolean {
  return code === 44 || code === 125 || ends.child(0, code) >= 0;
}

/** At a character that may end a bare string. Gives whether it does, with the cursor before it; else it is passed as text. */
function* bareStringEnds(cursor: Cursor, ends: MarkerSet, sink: ArgumentSink): Reading<boolean> {
  const found = yield* matchMarker(cursor, ends);
  if (found >= 0) {
    cursor.pos -= ends.markers[found]?.length ?? 0;
    return true;
  }
  const code = cursor.text.charCodeAt(cursor.pos);
  // Bounded look-ahead: kept in the cursor, so that it can be stepped back over.
  cursor.keep = cursor.pos;
  const ended = code === 44 ? yield* keyFollows(cursor) : code === 125 && (yield* endFollows(cursor, ends));
  cursor.pos = cursor.keep;
  cursor.keep = -1;
  if (ended) return true;
  cursor.pos++;
  sink.characters(0);
  return false;
}

/** The character so far behind what is kept; undefined: the text has ended before. */
function* ahead(cursor: Cursor, distance: number): Reading<string | undefined> {
  while (cursor.keep + distance >= cursor.text.length && !cursor.ended) yield;
  return cursor.text[cursor.keep + distance];
}

/** Whether `key:` stands behind the comma that is kept. */
function* keyFollows(cursor: Cursor): Reading<boolean> {
  let key = false;
  for (let distance = 1; distance < longestKey; distance++) {
    const character = yield* ahead(cursor, distance);
    if (character === undefined) return false;
    if (keyCharacter.test(character)) key = true;
    else if (!isSpace(character.charCodeAt(0))) return character === ":" && key;
  }
  return false;
}

/** Whether the call's end stands behind the bracket that is kept, white space and further brackets aside. */
function* endFollows(cursor: Cursor, ends: MarkerSet): Reading<boolean> {
  for (let distance = 1; distance < longestKey; distance++) {
    const character = yield* ahead(cursor, distance);
    if (character === undefined) return true;
    if (character !== "}" && !isSpace(character.charCodeAt(0))) return yield* awaitsEnd(cursor, distance, ends);
  }
  return false;
}

/** Waits until it is clear whether one of `ends` stands at this distance from what is kept. */
function* awaitsEnd(cursor: Cursor, distance: number, ends: MarkerSet): Reading<boolean> {
  for (;;) {
    const rest = cursor.text.slice(cursor.keep + distance, cursor.keep + distance + longestKey);
    if (ends.markers.some((marker) => rest.startsWith(marker))) return true;
    if (cursor.ended || !ends.markers.some((marker) => marker.startsWith(rest))) return false;
    yield;
  }
}

function* passSpace(cursor: Cursor): Reading<string> {
  let space = "";
  for (;;) {
    const code = yield* cursor.peek();
    if (code < 0 || !isSpace(code)) return space;
    space += String.fromCharCode(code);
    cursor.pos++;
  }
}
