import type { CallWriter } from "./call-output.ts";
import { type Cursor, notYet, type Parser, TextBuffer } from "./cursor.ts";
import { escapeCharacters, JsonScan, JsonStringDecoder } from "./json-scan.ts";

/**
 * Reads one JSON value. Returns its text, with control characters in strings escaped, or null, with the cursor at the offending
 * character, if it is not JSON.
 */
export function* readJsonValue(cursor: Cursor): Parser<string | null> {
  const buffer = new TextBuffer();
  const valid = yield* scanJson(cursor, (json) => buffer.add(json));
  return valid ? buffer.take() : null;
}

/** Reads a JSON string and returns its value, or null if it is not a string. */
export function* readJsonString(cursor: Cursor): Parser<string | null> {
  const simple = simpleString(cursor);
  if (simple !== null) return simple;
  if ((yield* cursor.peek()) !== 34) return null;
  const json = yield* readJsonValue(cursor);
  if (json === null) return null;
  return json.includes("\\") ? String(JSON.parse(json)) : json.slice(1, -1);
}

/** A string without escapes that is complete in the available text, as almost all keys and names are. */
function simpleString(cursor: Cursor): string | null {
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
 * Streams one JSON value as the arguments of a call, which starts once a second character of the value is valid. Returns whether the value
 * was complete and valid.
 */
export function* streamJson(cursor: Cursor, call: CallWriter): Parser<boolean> {
  const start = new TextBuffer();
  return yield* scanJson(cursor, (json, certain) => {
    if (call.started) return call.json(json);
    start.add(json);
    if (certain) call.json(start.take());
  });
}

/** Reads one JSON value; passes its text to `emit` as it arrives. `certain`: more than its opening bracket is valid. */
function* scanJson(cursor: Cursor, emit: (json: string, certain: boolean) => void): Parser<boolean> {
  const scan = new JsonScan();
  if (cursor.skipAvailableSpace() === notYet) yield* cursor.skipSpace();
  yield* cursor.repeat(() => {
    for (;;) {
      const { text, pos } = cursor;
      cursor.pos = scan.scan(text, pos);
      if (cursor.pos > pos) emit(text.slice(pos, cursor.pos), scan.certain);
      if (scan.state !== "control") return scan.state === "more";
      const escaped = escapeCharacters(text[cursor.pos] ?? "");
      cursor.pos++;
      emit(escaped, true);
    }
  });
  return scan.complete;
}

/**
 * Streams arguments that are written as a JSON string. If the string contains a JSON object, that object is the arguments; an empty string
 * means no arguments; any other string is passed on as it is. The cursor is at the quote. Returns whether the string was complete and
 * valid.
 */
export function* streamJsonText(cursor: Cursor, call: CallWriter): Parser<boolean> {
  const contents = new StringContents(call);
  const string = new JsonStringDecoder();
  cursor.pos++;
  yield* cursor.repeat(() => {
    const decoded = string.read(cursor.text, cursor.pos);
    cursor.pos = string.pos;
    return contents.push(decoded) && !string.closed;
  });
  contents.push(string.end());
  return contents.end(string.closed);
}

/** The arguments in a complete JSON value, by the rules of `streamJsonText`. */
export function unwrapString(json: string): string {
  if (!json.startsWith('"')) return json;
  const text = String(JSON.parse(json));
  if (text.trim() === "") return "{}";
  const scan = new JsonScan();
  return text.trimStart().startsWith("{") && scan.scan(text, 0) === text.length && scan.complete ? text : json;
}

/** The contents of an argument string: its first character decides whether they are a JSON object or a string. */
class StringContents {
  readonly #call: CallWriter;
  readonly #scan = new JsonScan();
  readonly #start = new TextBuffer();
  #kind: "unknown" | "object" | "string" = "unknown";
  #invalid = false;

  constructor(call: CallWriter) {
    this.#call = call;
  }

  /** Returns false when the contents turned out invalid. */
  push(text: string): boolean {
    if (this.#kind === "unknown") {
      const first = text.trimStart()[0];
      if (first === undefined) return true;
      this.#kind = first === "{" ? "object" : "string";
      if (this.#kind === "string") this.#call.json('"');
    }
    if (this.#kind === "string") this.#call.json(escapeCharacters(text));
    else this.#object(text);
    return !this.#invalid;
  }

  #object(text: string): void {
    for (let at = 0; at < text.length && !this.#invalid;) {
      if (this.#scan.state === "done") {
        this.#invalid = text.slice(at).trim() !== "";
        return;
      }
      const to = this.#scan.scan(text, at);
      this.#emit(text.slice(at, to));
      at = to;
      if (this.#scan.state === "control") {
        this.#emit(escapeCharacters(text[at] ?? ""));
        at++;
      } else if (this.#scan.state === "bad") this.#invalid = true;
    }
  }

  #emit(json: string): void {
    if (this.#call.started) return this.#call.json(json);
    this.#start.add(json);
    if (this.#scan.certain) this.#call.json(this.#start.take());
  }

  end(closed: boolean): boolean {
    if (this.#kind === "object") return closed && !this.#invalid && this.#scan.complete;
    if (!closed) return false;
    this.#call.json(this.#kind === "string" ? '"' : "{}");
    return true;
  }
}
