import { malformedJson } from "../../wire/apis/failures.ts";
import { isBlank, isScalar } from "../../wire/core/json-mistake.ts";
import type { Steps } from "../../wire/core/steps.ts";

const [quote, backslash, comma, colon, letterU] = [0x22, 0x5c, 0x2c, 0x3a, 0x75];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** The least number of bytes that are searched for the end of an item. */
const minSearched = 256;

/** Has no state between complete texts, so one decoder is shared. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A list or an object that is larger than a chunk. */
type Frame = { awaitsItem: boolean; name: string } & (
  | { readonly isList: true; readonly value: unknown[] }
  | { readonly isList: false; readonly value: Record<string, unknown> }
);

/**
 * Parses a JSON text (UTF-8, without a byte order mark) in chunks, so that other requests get their turn while a large body is parsed.
 * `JSON.parse` parses each chunk, which consists of complete items of a list or members of an object, so the value is exactly that of
 * `JSON.parse`. Only values that are larger than a chunk are assembled here: lists, objects and long strings.
 *
 * A worker thread is no alternative: the server's thread deserializes its answer in one step, which takes 27 ms for two million token
 * ids (12 MiB) and 26 ms for 280,000 strings (17 MiB), where the longest step here takes 12 ms (Node 20, 2026-11).
 *
 * `read` is an iterator: each step takes about as long as `JSON.parse` for a chunk, and the last one returns the value. Throws
 * `FailureError` 400 for a text that is not JSON. `BodyCounter` has limited the depth of the text before.
 */
export class IncrementalJson {
  readonly #bytes: Uint8Array;
  readonly #chunkSize: number;
  #at = 0;

  /** `chunkSize`: bytes, at least 1. */
  constructor(bytes: Uint8Array, chunkSize: number) {
    this.#bytes = bytes;
    this.#chunkSize = chunkSize;
  }

  *read(): Steps<unknown> {
    const bytes = this.#bytes;
    /** The open lists and objects, outermost first. */
    const frames: Frame[] = [];
    /** A complete value that belongs to the innermost frame. */
    let value: unknown = unread;
    let searched = this.#chunkSize;
    let before = 0;
    for (;;) {
      yield* this.#skipBlanks();
      const frame = frames.at(-1);
      if (!frame && value !== unread) break;
      // Each level of nested items is searched from its start, so no more bytes are searched than were parsed just before.
      searched = Math.min(this.#chunkSize, Math.max(minSearched, 2 * (this.#at - before)));
      before = this.#at;
      let end = this.#at;
      if (frame && value !== unread) {
        add(frame, value);
        value = unread;
      } else if (frame && (end = this.#endOfRun(searched)) !== -1) {
        const isEmpty = addRun(frame, this.#text(end));
        if (isEmpty && (frame.awaitsItem || bytes[end] === comma)) throw malformedJson();
        yield;
      } else {
        if (frame?.isList === false) frame.name = yield* this.#memberName();
        const first = bytes[this.#at];
        if (first === openList) frames.push({ isList: true, value: [], awaitsItem: false, name: "" });
        else if (first === openObject) frames.push({ isList: false, value: {}, awaitsItem: false, name: "" });
        else {
          value = first === quote ? yield* this.#string() : yield* this.#scalar();
          continue;
        }
        this.#at++;
        continue;
      }
      frame.awaitsItem = bytes[end] === comma;
      this.#at = end + 1;
      if (frame.awaitsItem) continue;
      if (bytes[end] !== (frame.isList ? closeList : closeObject)) throw malformedJson();
      frames.pop();
      ({ value } = frame);
    }
    if (this.#at < bytes.length) throw malformedJson();
    return value;
  }

  /**
   * Returns where the complete items of the innermost list or object end within the next `searched` bytes: at its closing bracket, or at
   * the last comma. -1: the next item is longer.
   */
  #endOfRun(searched: number): number {
    const bytes = this.#bytes;
    const to = Math.min(this.#at + searched, bytes.length);
    let [end, depth, inString, escaped] = [-1, 0, false, false];
    for (let at = this.#at; at < to; at++) {
      const byte = bytes[at];
      if (inString) {
        if (escaped) escaped = false;
        else if (byte === backslash) escaped = true;
        else if (byte === quote) inString = false;
        continue;
      }
      switch (byte) {
        case quote:
          inString = true;
          break;
        case comma:
          if (depth === 0) end = at;
          break;
        case openList:
        case openObject:
          depth++;
          break;
        case closeList:
        case closeObject:
          if (depth-- === 0) return at;
      }
    }
    return end;
  }

  *#memberName(): Steps<string> {
    if (this.#bytes[this.#at] !== quote) throw malformedJson();
    const name = yield* this.#string();
    yield* this.#skipBlanks();
    if (this.#bytes[this.#at++] !== colon) throw malformedJson();
    yield* this.#skipBlanks();
    return name;
  }

  *#string(): Steps<string> {
    const chunks: string[] = [];
    let isOpen = true;
    this.#at++;
    while (isOpen) {
      const end = this.#endOfStringChunk();
      chunks.push(parsed(`"${this.#text(end)}"`) as string);
      isOpen = this.#bytes[end] !== quote;
      this.#at = isOpen ? end : end + 1;
      yield;
    }
    return chunks.join("");
  }

  /** The end of the next chunk of a string: its quote, or a boundary between two characters. */
  #endOfStringChunk(): number {
    const bytes = this.#bytes;
    const limit = Math.min(this.#at + this.#chunkSize, bytes.length);
    let at = this.#at;
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

  /** A number, true, false or null. `JSON.parse` takes 45 ms for a number of 30 MB, which cannot be divided. */
  *#scalar(): Steps<unknown> {
    let end = this.#at;
    for (; isScalar(this.#bytes[end]); end++) if ((end - this.#at) % this.#chunkSize === this.#chunkSize - 1) yield;
    const value = parsed(this.#text(end));
    this.#at = end;
    return value;
  }

  *#skipBlanks(): Steps<void> {
    for (let left = this.#chunkSize; isBlank(this.#bytes[this.#at]); this.#at++) {
      if (--left > 0) continue;
      left = this.#chunkSize;
      yield;
    }
  }

  /** The text that is not parsed yet, up to `end`. */
  #text(end: number): string {
    try {
      return utf8.decode(this.#bytes.subarray(this.#at, end));
    } catch {
      throw malformedJson();
    }
  }
}

const unread = Symbol("unread");

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw malformedJson();
  }
}

function add(frame: Frame, value: unknown): void {
  if (frame.isList) frame.value.push(value);
  else set(frame.value, frame.name, value);
}

/** Adds items of a list or members of an object, separated by commas. Returns whether the run is empty. */
function addRun({ isList, value }: Frame, text: string): boolean {
  if (isList) {
    const items = parsed(`[${text}]`) as unknown[];
    for (const item of items) value.push(item);
    return items.length === 0;
  }
  const members = parsed(`{${text}}`) as Record<string, unknown>;
  const names = Object.keys(members);
  for (const name of names) set(value, name, members[name]);
  return names.length === 0;
}

/** Sets an own property of any name, as `JSON.parse` does: the last of several members with one name, at the position of the first. */
function set(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Whether the byte continues a character. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
