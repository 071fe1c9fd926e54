import type { Header, KeptText, TapeContents, TimedText } from "../../../judge/inspect/inspected-request.ts";
import type { Mask } from "../mask.ts";

/** The size of an item of a tape. */
export interface Measures<T> {
  /** In memory, its entry on the tape included. */
  bytes(item: T): number;
  /** Of its text. */
  characters(item: T): number;
}

/** The share of the limit for the beginning; the end has the rest. */
const headShare = 1 / 4;
/** The number of dropped items that may still be in memory. */
const maxDropped = 256;

/**
 * A bounded record of items in order: if there are too many, the beginning and the end are kept. Items and times are in arrays of their
 * own, because an object for each item would add to garbage collection.
 */
export class Tape<T> {
  readonly #measures: Measures<T>;
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head: T[] = [];
  readonly #headTimes: number[] = [];
  #headBytes = 0;
  #headIsFull = false;
  /** The oldest item is at `#first`; those before it are dropped, and removed from time to time. */
  #tail: T[] = [];
  #tailTimes: number[] = [];
  #first = 0;
  #tailBytes = 0;
  #droppedItems = 0;
  #droppedCharacters = 0;

  /** `limit`: in bytes. */
  constructor(limit: number, measures: Measures<T>) {
    this.#measures = measures;
    this.#headLimit = limit * headShare;
    this.#tailLimit = limit - this.#headLimit;
  }

  /** The size of what is kept; at most the limit. */
  get bytes(): number {
    return this.#headBytes + this.#tailBytes;
  }

  /** Something was dropped. */
  get isCut(): boolean {
    return this.#droppedItems > 0;
  }

  /** `ms`: the time of the item. Returns by how many bytes the tape has grown, below 0 if more was dropped. */
  add(ms: number, item: T): number {
    const bytes = this.#measures.bytes(item);
    if (!this.#headIsFull && this.#headBytes + bytes <= this.#headLimit) {
      this.#head.push(item);
      this.#headTimes.push(ms);
      this.#headBytes += bytes;
      return bytes;
    }
    const before = this.#tailBytes;
    this.#headIsFull = true;
    this.#tail.push(item);
    this.#tailTimes.push(ms);
    this.#tailBytes += bytes;
    while (this.#tailBytes > this.#tailLimit) this.#dropOldest();
    return this.#tailBytes - before;
  }

  /** `show` converts an item and its time. */
  contents<U>(show: (ms: number, item: T) => U): TapeContents<U> {
    const shown = (items: readonly T[], times: readonly number[]): U[] =>
      items.map((item, at) => show(times[at] ?? 0, item));
    const head = shown(this.#head, this.#headTimes);
    const tail = shown(this.#tail.slice(this.#first), this.#tailTimes.slice(this.#first));
    const [chunks, characters] = [this.#droppedItems, this.#droppedCharacters];
    if (chunks === 0) return { chunks: [...head, ...tail] };
    return { chunks: [...head, ...tail], left_out: { after: head.length, chunks, characters } };
  }

  #dropOldest(): void {
    const oldest = this.#tail[this.#first] as T;
    this.#first++;
    this.#tailBytes -= this.#measures.bytes(oldest);
    this.#droppedItems++;
    this.#droppedCharacters += this.#measures.characters(oldest);
    if (this.#first < maxDropped && this.#first < this.#tail.length) return;
    this.#tail = this.#tail.slice(this.#first);
    this.#tailTimes = this.#tailTimes.slice(this.#first);
    this.#first = 0;
  }
}

/** The size of a string and its entry without the characters, in bytes. */
export const bytesPerText = 96;

/** The maximum size of a text in memory, in bytes. */
export function textBytes(text: string): number {
  return bytesPerText + 2 * text.length;
}

/** The beginning of a text, as much as `limit` bytes can hold. */
export function keptText(text: string, limit: number): KeptText {
  const maxLength = Math.floor(limit / 2);
  if (text.length <= maxLength) return { text };
  const end = characterBoundary(text, maxLength);
  return { text: copied(text, 0, end), left_out: text.length - end };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A copy of a part of a text: V8 keeps the whole text in memory for a slice of it. */
export function copied(text: string, start: number, end: number): string {
  return decoder.decode(encoder.encode(text.slice(start, end)));
}

/** The last position up to `end` that is not within a surrogate pair. */
export function characterBoundary(text: string, end: number): number {
  const unit = text.charCodeAt(end);
  return end < text.length && unit >= 0xdc00 && unit < 0xe000 ? end - 1 : end;
}

/**
 * Names of headers that may contain a secret; a browser's WebSocket can send a key only as the name of a protocol. Headers about rate
 * limits have similar names and no secret.
 */
const secret = /auth|key|token|secret|cookie|session|password|credential|sig|^sec-websocket-protocol$/i;
const harmless = /ratelimit/i;

/** Replaces the values of headers with such names, and the configuration's secrets in other headers. */
export function maskedHeaders(headers: readonly Header[], mask: Mask): Header[] {
  return headers.map(([name, value]) => {
    if (!secret.test(name) || harmless.test(name)) return [name, mask.text(value)];
    // The scheme reveals nothing of the key.
    const [, scheme = ""] = /^(Bearer |Basic )/i.exec(value) ?? [];
    return [name, `${scheme}[key]`];
  });
}

/**
 * Replaces the secrets in a recorded text. A secret may be split over several items, so if there is one, the items before and after the
 * dropped part are joined, and positions in the text change (`isChanged`).
 */
export function maskedTape(
  tape: TapeContents<TimedText>,
  mask: Mask,
): { readonly tape: TapeContents<TimedText>; readonly isChanged: boolean } {
  const { chunks, left_out: leftOut } = tape;
  const at = leftOut?.after ?? chunks.length;
  const head = maskedTexts(chunks.slice(0, at), mask);
  const tail = maskedTexts(chunks.slice(at), mask);
  if (!head && !tail) return { tape, isChanged: false };
  const before = head ?? chunks.slice(0, at);
  return {
    tape: {
      chunks: [...before, ...(tail ?? chunks.slice(at))],
      ...(leftOut && { left_out: { ...leftOut, after: before.length } }),
    },
    isChanged: true,
  };
}

/** null: there is no secret. */
function maskedTexts(texts: readonly TimedText[], mask: Mask): TimedText[] | null {
  if (mask.isEmpty) return null;
  const text = texts.map((item) => item.text).join("");
  const shown = mask.text(text);
  return shown === text ? null : [{ ms: texts[0]?.ms ?? 0, text: shown }];
}
