import { awaited } from "./cursor.ts";
import type { Cursor, Reading } from "./cursor.ts";
import type { CallAtHand } from "./desk.ts";
import { JsonScan } from "./json-scan.ts";
import { Pile } from "./pile.ts";

/** Passes one JSON value. Gives its text, with control characters in strings escaped; null, with the cursor at the fault, if it is not JSON. */
export function* readJson(cursor: Cursor): Reading<string | null> {
  const pile = new Pile();
  const good = yield* scanJson(cursor, (piece) => pile.add(piece));
  return good ? pile.take() : null;
}

/** Passes a JSON string. Gives what it says; null if it is not a string. */
export function* readJsonString(cursor: Cursor): Reading<string | null> {
  const plain = plainString(cursor);
  if (plain !== null) return plain;
  if ((yield* cursor.peek()) !== 34) return null;
  const json = yield* readJson(cursor);
  if (json === null) return null;
  return json.includes("\\") ? String(JSON.parse(json)) : json.slice(1, -1);
}

/** A string without escapes that stands whole in the text at hand, as nearly all keys and names do. */
function plainString(cursor: Cursor): string | null {
  const { text, pos } = cursor;
  if (text.charCodeAt(pos) !== 34) return null;
  for (let i = pos + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 34) {
      cursor.pos = i + 1;
      return text.slice(pos + 1, i);
    }
    if (code === 92 || code < 32) return null;
  }
  return null;
}

/**
 * Streams one JSON value as arguments of a call, which is announced when a second character of it is right. Gives whether the value was
 * complete and right.
 */
export function* streamJson(cursor: Cursor, call: CallAtHand): Reading<boolean> {
  const lead = new Pile();
  return yield* scanJson(cursor, (piece, certain) => {
    if (call.announced) return call.json(piece);
    lead.add(piece);
    if (certain) call.json(lead.take());
  });
}

/** Follows one JSON value; its text goes to `piece` as it comes, with the cursor behind it. `certain`: more than its first bracket. */
function* scanJson(cursor: Cursor, piece: (json: string, certain: boolean) => void): Reading<boolean> {
  const scan = new JsonScan();
  if (cursor.skipSpaceNow() === awaited) yield* cursor.skipSpace();
  yield* cursor.repeat(() => {
    for (;;) {
      const { text, pos } = cursor;
      cursor.pos = scan.scan(text, pos);
      if (cursor.pos > pos) piece(text.slice(pos, cursor.pos), scan.certain);
      if (scan.state !== "control") return scan.state === "more";
      const escaped = JSON.stringify(text[cursor.pos]).slice(1, -1);
      cursor.pos++;
      piece(escaped, true);
    }
  });
  return scan.complete;
}
