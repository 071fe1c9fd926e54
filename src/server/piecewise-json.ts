import { malformedJson } from "../apis/failures.ts";

const [quote, backslash, comma, colon, letterU] = [0x22, 0x5c, 0x2c, 0x3a, 0x75];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Keeps nothing between whole texts, so one serves all. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A list or an object that is put together from pieces. */
interface Frame {
  readonly isList: boolean;
  /** What was read of it; null: nothing. */
  value: unknown[] | Record<string, unknown> | null;
  /** Of the member in progress, where the name is read and the value is not. */
  key: string | null;
  /** A comma was the last that was read of it, so something must follow. */
  awaitsItem: boolean;
}

/**
 * Reads a JSON text (UTF-8, without a byte order mark) in pieces, so that others have their turn while a large one is read. The value is
 * exactly the one of `JSON.parse`, which reads every piece: whole items of a list and whole members of an object, as many as a piece
 * holds. Only what is larger than a piece is put together here: lists and objects of such runs, and long strings.
 *
 * An iterator: each step takes about as long as `JSON.parse` for a piece, the last one returns the value. Throws `FailureError` 400 for a
 * text that is not JSON. The text is trusted not to be nested deeper than a list of depths may be long (`BodyCounter` sees to that).
 */
export class PiecewiseJson {
  readonly #bytes: Uint8Array;
  readonly #pieceSize: number;
  /** The next byte to look at. All before `#readTo` is read, too. */
  #at = 0;
  #readTo = 0;
  /** Where the string in progress began; -1 outside of strings. */
  #stringAt = -1;
  #escaped = false;
  /** How many lists and objects are open; for each, from the text itself (0) on: where it was opened, and where its last item begins. */
  #depth = 0;
  readonly #openAt: number[] = [-1];
  readonly #itemAt: number[] = [0];
  /** The outermost ones of those. The text itself is taken for a list of one item. */
  readonly #frames: Frame[] = [{ isList: true, value: null, key: null, awaitsItem: false }];
  /** The item in progress of the innermost frame is read already: only blanks may follow. */
  #itemIsRead = false;

  /** `pieceSize`: bytes, at least 1. */
  constructor(bytes: Uint8Array, pieceSize: number) {
    this.#bytes = bytes;
    this.#pieceSize = pieceSize;
  }

  *read(): Generator<undefined, unknown, undefined> {
    const { length } = this.#bytes;
    while (this.#at < length) {
      this.#scan(Math.min(this.#at + this.#pieceSize, length));
      this.#readItems();
      if (this.#stringAt !== -1 && this.#at - this.#stringAt > this.#pieceSize) yield* this.#readLongString();
      yield;
    }
    if (this.#stringAt !== -1 || this.#depth > 0) throw malformedJson();
    const text = this.#innermost();
    this.#readRest(text, length);
    if (text.value === null) throw malformedJson();
    const [value] = text.value as unknown[];
    return value;
  }

  /** Looks for what begins and ends. Closes frames; whatever else comes is left to be read. */
  #scan(to: number): void {
    const bytes = this.#bytes;
    // Local variables: a field that is written for every byte costs three times as much.
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

  /** Reads all whole items so far, and makes frames of the lists and objects that are open. */
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

  /** Reads what stands in a frame before the value at `to`: for an object, its name. */
  #beginItem(frame: Frame, to: number): void {
    if (this.#itemIsRead) throw malformedJson();
    if (frame.isList || frame.key !== null) this.#expectBlank(to);
    // Any value does to read the name: this one can belong to nothing that stands before it.
    else [frame.key = ""] = Object.keys(parsed(`{${this.#text(to)}[]}`) as object);
  }

  /** At a comma of the innermost frame, whose item may have been read in another way than with others. */
  #endItem(at: number): void {
    const frame = this.#innermost();
    if (!this.#itemIsRead && frame.key === null) return;
    this.#readItem(frame, at);
    frame.awaitsItem = true;
    this.#readTo = at + 1;
  }

  /** Ends the innermost frame, at its bracket. */
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

  /** Reads what is left of the item in progress. */
  #readItem(frame: Frame, to: number): void {
    if (this.#itemIsRead) this.#expectBlank(to);
    else add(frame, parsed(this.#text(to)));
    this.#itemIsRead = false;
  }

  /** Reads whole items or members; a comma follows, or the end of the list or object. */
  #readRun(frame: Frame, to: number, awaitsItem: boolean): void {
    const text = this.#text(to);
    const isEmpty = frame.isList
      ? addItems(frame, parsed(`[${text}]`) as unknown[])
      : addMembers(frame, parsed(`{${text}}`) as Record<string, unknown>);
    if (isEmpty && (awaitsItem || frame.awaitsItem)) throw malformedJson();
    frame.awaitsItem = awaitsItem;
  }

  /** Reads the string in progress, which is longer than a piece: a value, or the name of a member. */
  *#readLongString(): Generator<undefined, void, undefined> {
    const bytes = this.#bytes;
    const frame = this.#innermost();
    const isName = !frame.isList && frame.key === null && !this.#itemIsRead && this.#isBlank(this.#stringAt);
    if (!isName) this.#beginItem(frame, this.#stringAt);
    const pieces: string[] = [];
    this.#readTo = this.#stringAt + 1;
    let isOpen = true;
    while (isOpen) {
      const to = this.#endOfPiece();
      pieces.push(parsed(`"${this.#text(to)}"`) as string);
      isOpen = bytes[to] !== quote;
      this.#readTo = isOpen ? to : to + 1;
      yield;
    }
    this.#at = this.#readTo;
    [this.#stringAt, this.#escaped] = [-1, false];
    const text = pieces.join("");
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

  /** Where the next piece of a string ends: at its quote, or between two characters. */
  #endOfPiece(): number {
    const bytes = this.#bytes;
    const enough = Math.min(this.#readTo + this.#pieceSize, bytes.length);
    let at = this.#readTo;
    while (at < enough) {
      const byte = bytes[at];
      if (byte === quote) return at;
      if (byte !== backslash) at++;
      else at += bytes[at + 1] === letterU ? 6 : 2;
    }
    while (isContinuation(bytes[at])) at++;
    // Without a quote it does not end.
    if (at >= bytes.length) throw malformedJson();
    return at;
  }

  #innermost(): Frame {
    return this.#frames.at(-1) as Frame;
  }

  /** What is not read yet, up to there. */
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

/** Returns whether there are none. */
function addItems(frame: Frame, items: unknown[]): boolean {
  if (items.length === 0) return true;
  if (frame.value === null) frame.value = items;
  else for (const item of items) (frame.value as unknown[]).push(item);
  return false;
}

/** Returns whether there are none. Of members with the same name the last one wins, in the place of the first. */
function addMembers(frame: Frame, members: Record<string, unknown>): boolean {
  const names = Object.keys(members);
  if (names.length === 0) return true;
  if (frame.value === null) frame.value = members;
  else for (const name of names) set(frame.value as Record<string, unknown>, name, members[name]);
  return false;
}

/** `JSON.parse` makes an own member of any name. */
function set(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Of a character of several bytes, not the first one. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
