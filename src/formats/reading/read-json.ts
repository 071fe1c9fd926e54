import { awaited, type Cursor, Pile, type Reading } from "./cursor.ts";
import type { CallAtHand } from "./desk.ts";
import { escapeCharacters, JsonScan, JsonStringDecoder } from "./json-scan.ts";

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

/**
 * Streams arguments that are written as a JSON string. If the string holds a JSON object, that object is the arguments; an empty one
 * means none; any other string is kept. The cursor stands at the quote. Gives whether it was complete and right.
 */
export function* streamJsonText(cursor: Cursor, call: CallAtHand): Reading<boolean> {
  const inner = new InnerText(call);
  const string = new JsonStringDecoder();
  cursor.pos++;
  yield* cursor.repeat(() => {
    const decoded = string.read(cursor.text, cursor.pos);
    cursor.pos = string.pos;
    return inner.push(decoded) && !string.closed;
  });
  inner.push(string.end());
  return inner.end(string.closed);
}

/** The arguments of a JSON value that was read whole. */
export function innerObject(json: string): string {
  if (!json.startsWith('"')) return json;
  const value: unknown = JSON.parse(json);
  const text = String(value);
  if (text.trim() === "") return "{}";
  const scan = new JsonScan();
  return text.trimStart().startsWith("{") && scan.scan(text, 0) === text.length && scan.complete ? text : json;
}

/** What a string says, piece by piece: decided by its first character. */
class InnerText {
  readonly #call: CallAtHand;
  readonly #scan = new JsonScan();
  readonly #lead = new Pile();
  #kind: "open" | "object" | "string" = "open";
  #bad = false;

  constructor(call: CallAtHand) {
    this.#call = call;
  }

  /** Gives whether it can go on. */
  push(text: string): boolean {
    if (this.#kind === "open") {
      const first = text.trimStart()[0];
      if (first === undefined) return true;
      this.#kind = first === "{" ? "object" : "string";
      if (this.#kind === "string") this.#call.json('"');
    }
    if (this.#kind === "string") this.#call.json(escapeCharacters(text));
    else this.#object(text);
    return !this.#bad;
  }

  #object(text: string): void {
    for (let at = 0; at < text.length && !this.#bad;) {
      if (this.#scan.state === "done") {
        this.#bad = text.slice(at).trim() !== "";
        return;
      }
      const to = this.#scan.scan(text, at);
      this.#send(text.slice(at, to));
      at = to;
      if (this.#scan.state === "control") {
        this.#send(escapeCharacters(text[at] ?? ""));
        at++;
      } else if (this.#scan.state === "bad") this.#bad = true;
    }
  }

  #send(json: string): void {
    if (this.#call.announced) return this.#call.json(json);
    this.#lead.add(json);
    if (this.#scan.certain) this.#call.json(this.#lead.take());
  }

  end(closed: boolean): boolean {
    if (this.#kind === "object") return closed && !this.#bad && this.#scan.complete;
    if (!closed) return false;
    this.#call.json(this.#kind === "string" ? '"' : "{}");
    return true;
  }
}
