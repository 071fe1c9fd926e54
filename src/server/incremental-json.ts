import { malformedJson } from "../apis/failures.ts";

const [quote, backslash, comma, colon, letterU] = [0x22, 0x5c, 0x2c, 0x3a, 0x75];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Has no state between complete texts, so one decoder is shared. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A list or an object that is assembled from several chunks. */
interface Frame {
  readonly isList: boolean;
  /** The part that was read; null: nothing yet. */
  value: unknown[] | Record<string, unknown> | null;
  /** The name of a member whose value is not read yet. */
  key: string | null;
  /** The last token was a comma, so an item must follow. */
  awaitsItem: boolean;
}

/**
 * Parses a JSON text (UTF-8, without a byte order mark) in chunks, so that other requests get their turn while a large body is parsed.
 * `JSON.parse` parses each chunk, which consists of complete items of a list or members of an object, so the value is exactly that of
 * `JSON.parse`. Only values that are larger than a chunk are assembled here: lists, objects and long strings. A worker thread would not do:
 * it would have to copy the value back, which blocks the event loop about as long as parsing.
 *
 * `read` is an iterator: each step takes about as long as `JSON.parse` for a chunk, and the last one returns the value. Throws
 * `FailureError` 400 for a text that is not JSON. `BodyCounter` has limited the depth of the text before.
 */
export class IncrementalJson {
  readonly #bytes: Uint8Array;
  readonly #chunkSize: number;
  /** The next byte to scan; bytes before `#readTo` are parsed. */
  #at = 0;
  #readTo = 0;
  /** The start of the string in progress; -1 outside of strings. */
  #stringAt = -1;
  #escaped = false;
  /** The number of open lists and objects; for each, its start and the start of its last item. Level 0 is the text itself. */
  #depth = 0;
  readonly #openAt: number[] = [-1];
  readonly #itemAt: number[] = [0];
  /** The outermost of the open lists and objects. The text itself is treated as a list of one item. */
  readonly #frames: Frame[] = [{ isList: true, value: null, key: null, awaitsItem: false }];
  /** The item in progress of the innermost frame is parsed: only whitespace may follow. */
  #itemIsRead = false;

  /** `chunkSize`: bytes, at least 1. */
  constructor(bytes: Uint8Array, chunkSize: number) {
    this.#bytes = bytes;
    this.#chunkSize = chunkSize;
  }

  *read(): Generator<undefined, unknown, undefined> {
    const { length } = this.#bytes;
    while (this.#at < length) {
      this.#scan(Math.min(this.#at + this.#chunkSize, length));
      this.#readItems();
      if (this.#stringAt !== -1 && this.#at - this.#stringAt > this.#chunkSize) yield* this.#readLongString();
      yield;
    }
    if (this.#stringAt !== -1 || this.#depth > 0) throw malformedJson();
    const text = this.#innermost();
    this.#readRest(text, length);
    if (text.value === null) throw malformedJson();
    const [value] = text.value as unknown[];
    return value;
  }

  /** Finds where lists, objects, strings and items begin and end. Closes frames; everything else is parsed later. */
  #scan(to: number): void {
    const bytes = this.#bytes;
    // Local variables, because writing a field for every byte takes three times as long.
    let [stringAt, escaped, depth] = [this.#stringAt, this.#escaped, this.#depth];
    for (let at = this.#at; at < to; at++) {
      const byte = bytes[at];
      if (stringAt !== -1) {
        if (escaped) escaped = false;
        else if (byte === backslash) escaped = true;
        else if (byte === quote) stringAt = -1;
        continue;
      }
      switch (byte) {
        case quote:
          stringAt = at;
          break;
        case comma:
          if (depth === 0) throw malformedJson();
          if (depth === this.#frames.length - 1) this.#endItem(at);
          this.#itemAt[depth] = at + 1;
          break;
        case openList:
        case openObject:
          depth++;
          this.#openAt[depth] = at;
          this.#itemAt[depth] = at + 1;
          break;
        case closeList:
        case closeObject:
          if (depth === 0) throw malformedJson();
          if (depth === this.#frames.length - 1) this.#close(at, byte === closeList);
          depth--;
      }
    }
    [this.#stringAt, this.#escaped, this.#depth, this.#at] = [stringAt, escaped, depth, to];
  }

  /** Parses all complete items so far, and creates frames for the open lists and objects. */
  #readItems(): void {
    for (let level = this.#frames.length - 1; ; level++) {
      const frame = this.#innermost();
      const itemAt = this.#itemAt[level] ?? 0;
      if (itemAt > this.#readTo) {
        this.#readRun(frame, itemAt - 1, true);
        this.#readTo = itemAt;
      }
      if (level === this.#depth) return;
      const opening = this.#openAt[level + 1] ?? 0;
      this.#beginItem(frame, opening);
      const isList = this.#bytes[opening] === openList;
      this.#frames.push({ isList, value: null, key: null, awaitsItem: false });
      this.#readTo = opening + 1;
    }
  }

  /** Parses what precedes the value at `to` in a frame: in an object, its name. */
  #beginItem(frame: Frame, to: number): void {
    if (this.#itemIsRead) throw malformedJson();
    if (frame.isList || frame.key !== null) this.#expectBlank(to);
    // The appended value serves to parse the name; it cannot combine with what precedes it.
    else [frame.key = ""] = Object.keys(parsed(`{${this.#text(to)}[]}`) as object);
  }

  /** Ends an item of the innermost frame that is not part of a run, at its comma. */
  #endItem(at: number): void {
    const frame = this.#innermost();
    if (!this.#itemIsRead && frame.key === null) return;
    this.#readItem(frame, at);
    frame.awaitsItem = true;
    this.#readTo = at + 1;
  }

  /** Closes the innermost frame, at its bracket. */
  #close(at: number, isList: boolean): void {
    const frame = this.#innermost();
    if (frame.isList !== isList) throw malformedJson();
    this.#readRest(frame, at);
    this.#frames.pop();
    add(this.#innermost(), frame.value ?? (isList ? [] : {}));
    this.#itemIsRead = true;
    this.#readTo = at + 1;
  }

  #readRest(frame: Frame, to: number): void {
    if (this.#itemIsRead || frame.key !== null) this.#readItem(frame, to);
    else this.#readRun(frame, to, false);
  }

  /** Parses the rest of the item in progress. */
  #readItem(frame: Frame, to: number): void {
    if (this.#itemIsRead) this.#expectBlank(to);
    else add(frame, parsed(this.#text(to)));
    this.#itemIsRead = false;
  }

  /** Parses complete items or members, up to a comma or the end of the list or object. */
  #readRun(frame: Frame, to: number, awaitsItem: boolean): void {
    const text = this.#text(to);
    const isEmpty = frame.isList
      ? addItems(frame, parsed(`[${text}]`) as unknown[])
      : addMembers(frame, parsed(`{${text}}`) as Record<string, unknown>);
    if (isEmpty && (awaitsItem || frame.awaitsItem)) throw malformedJson();
    frame.awaitsItem = awaitsItem;
  }

  /** Parses the string in progress, which is longer than a chunk: a value, or the name of a member. */
  *#readLongString(): Generator<undefined, void, undefined> {
    const bytes = this.#bytes;
    const frame = this.#innermost();
    const isName = !frame.isList && frame.key === null && !this.#itemIsRead && this.#isBlank(this.#stringAt);
    if (!isName) this.#beginItem(frame, this.#stringAt);
    const chunks: string[] = [];
    this.#readTo = this.#stringAt + 1;
    let isOpen = true;
    while (isOpen) {
      const to = this.#endOfChunk();
      chunks.push(parsed(`"${this.#text(to)}"`) as string);
      isOpen = bytes[to] !== quote;
      this.#readTo = isOpen ? to : to + 1;
      yield;
    }
    this.#at = this.#readTo;
    [this.#stringAt, this.#escaped] = [-1, false];
    const text = chunks.join("");
    if (!isName) {
      add(frame, text);
      this.#itemIsRead = true;
      return;
    }
    frame.key = text;
    while (isSpace(bytes[this.#at])) this.#at++;
    if (bytes[this.#at] !== colon) throw malformedJson();
    this.#readTo = ++this.#at;
  }

  /** The end of the next chunk of a string: its quote, or a boundary between two characters. */
  #endOfChunk(): number {
    const bytes = this.#bytes;
    const limit = Math.min(this.#readTo + this.#chunkSize, bytes.length);
    let at = this.#readTo;
    while (at < limit) {
      const byte = bytes[at];
      if (byte === quote) return at;
      if (byte !== backslash) at++;
      else at += bytes[at + 1] === letterU ? 6 : 2;
    }
    while (isContinuation(bytes[at])) at++;
    // The string has no end.
    if (at >= bytes.length) throw malformedJson();
    return at;
  }

  #innermost(): Frame {
    return this.#frames.at(-1) as Frame;
  }

  /** The text that is not parsed yet, up to `to`. */
  #text(to: number): string {
    try {
      return utf8.decode(this.#bytes.subarray(this.#readTo, to));
    } catch {
      throw malformedJson();
    }
  }

  #isBlank(to: number): boolean {
    for (let at = this.#readTo; at < to; at++) if (!isSpace(this.#bytes[at])) return false;
    return true;
  }

  #expectBlank(to: number): void {
    if (!this.#isBlank(to)) throw malformedJson();
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw malformedJson();
  }
}

function add(frame: Frame, value: unknown): void {
  if (frame.isList) addItems(frame, [value]);
  else set((frame.value ??= {}) as Record<string, unknown>, frame.key ?? "", value);
  frame.key = null;
}

/** Returns whether `items` is empty. */
function addItems(frame: Frame, items: unknown[]): boolean {
  if (items.length === 0) return true;
  if (frame.value === null) frame.value = items;
  else for (const item of items) (frame.value as unknown[]).push(item);
  return false;
}

/** Returns whether there are no members. The last of several members with the same name wins, at the position of the first. */
function addMembers(frame: Frame, members: Record<string, unknown>): boolean {
  const names = Object.keys(members);
  if (names.length === 0) return true;
  if (frame.value === null) frame.value = members;
  else for (const name of names) set(frame.value as Record<string, unknown>, name, members[name]);
  return false;
}

/** Sets an own property of any name, as `JSON.parse` does. */
function set(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Whether the byte continues a character. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
