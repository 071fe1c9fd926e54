import type { Header, KeptText, TapeContents, TimedText } from "../../inspect/inspected-request.ts";
import type { Mask } from "../mask.ts";

/** The size of an item of a tape. */
export interface Measures<T> {
  /** In memory, its entry on the tape included. */
  bytes(item: T): number;
  /** Of its text. */
  characters(item: T): number;
  /** The number of items that `left_out` counts for it. */
  chunks(item: T): number;
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
  #droppedChunks = 0;
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

  /** `show` converts an item and its time into the chunks that are shown. */
  contents<U>(show: (ms: number, item: T) => readonly U[]): TapeContents<U> {
    const shown = (items: readonly T[], times: readonly number[]): U[] =>
      items.flatMap((item, at) => show(times[at] ?? 0, item));
    const head = shown(this.#head, this.#headTimes);
    const tail = shown(this.#tail.slice(this.#first), this.#tailTimes.slice(this.#first));
    const [chunks, characters] = [this.#droppedChunks, this.#droppedCharacters];
    if (chunks === 0) return { chunks: [...head, ...tail] };
    return { chunks: [...head, ...tail], left_out: { after: head.length, chunks, characters } };
  }

  #dropOldest(): void {
    const oldest = this.#tail[this.#first] as T;
    this.#first++;
    this.#tailBytes -= this.#measures.bytes(oldest);
    this.#droppedChunks += this.#measures.chunks(oldest);
    this.#droppedCharacters += this.#measures.characters(oldest);
    if (this.#first < maxDropped && this.#first < this.#tail.length) return;
    this.#tail = this.#tail.slice(this.#first);
    this.#tailTimes = this.#tailTimes.slice(this.#first);
    this.#first = 0;
  }
}

/** The maximum length of a text that is copied into a block, in characters; a longer one is kept as it is. */
const maxShortText = 1024;
/** The sizes of the first block of a tape and of the largest one, and of a block without its texts, in bytes. */
const firstBlockSize = 2 * 1024;
const maxBlockSize = 32 * 1024;
const bytesPerBlock = 256;
/** The size of the numbers before a text, in bytes, and the maximum size of a character. */
const numbersSize = 6;
const maxCharacterSize = 3;

/**
 * A tape of texts. A stream has many short texts: they are copied into blocks outside of V8's heap, because the collector moves each object that
 * lives for a second twice, and then marks it again and again. A tape keeps or drops whole items, so a long text is added in several.
 */
export class TextTape {
  readonly #tape: Tape<TextBlock | string>;
  readonly #maxLength: number;
  readonly #maxShort: number;
  readonly #maxBlockSize: number;
  #nextBlockSize = firstBlockSize;
  /** The block that takes further texts. */
  #open: TextBlock | undefined;

  /** `limit`: in bytes. */
  constructor(limit: number) {
    this.#tape = new Tape(limit, blockMeasures);
    this.#maxLength = Math.max(16, Math.floor(limit / 32));
    this.#maxBlockSize = Math.min(maxBlockSize, Math.floor(limit / 16) - bytesPerBlock);
    this.#maxShort = Math.min(maxShortText, (this.#maxBlockSize - numbersSize) / maxCharacterSize);
  }

  /** The size of what is kept; at most the limit. */
  get bytes(): number {
    return this.#tape.bytes;
  }

  /** `ms`: the time of the text, not before that of the last one. Returns by how many bytes the tape has grown. */
  add(ms: number, text: string): number {
    return this.#open?.add(ms, text) === true ? 0 : this.#addItem(ms, text);
  }

  #addItem(ms: number, text: string): number {
    if (text.length <= this.#maxShort) return this.#addBlock(ms, text);
    this.#open = undefined;
    if (text.length <= this.#maxLength) return this.#tape.add(ms, text);
    let grown = 0;
    for (let from = 0; from < text.length;) {
      const end = characterBoundary(text, Math.min(text.length, from + this.#maxLength));
      grown += this.#tape.add(ms, copied(text, from, end));
      from = end;
    }
    return grown;
  }

  #addBlock(ms: number, text: string): number {
    const size = Math.min(this.#nextBlockSize, this.#maxBlockSize);
    const block = (this.#open = new TextBlock(Math.max(size, numbersSize + maxCharacterSize * text.length), ms));
    this.#nextBlockSize = size * 2;
    block.add(ms, text);
    return this.#tape.add(ms, block);
  }

  contents(): TapeContents<TimedText> {
    return this.#tape.contents((ms, item) =>
      item instanceof TextBlock ? item.texts() : [{ ms: Math.round(ms * 100) / 100, text: item }],
    );
  }
}

/** Short texts in UTF-8. Each follows the time since the text before it (four bytes, in hundredths of a millisecond) and its size (two bytes). */
class TextBlock {
  count = 0;
  /** The sum of the lengths. */
  characters = 0;
  readonly #bytes: Buffer;
  #used = 0;
  /** The times of the first and of the last text, in hundredths of a millisecond. */
  readonly #first: number;
  #last: number;

  /** `size`: in bytes; `ms`: the time of the first text. */
  constructor(size: number, ms: number) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
    this.#first = this.#last = Math.round(ms * 100);
  }

  /** In memory, in bytes. */
  get size(): number {
    return bytesPerBlock + this.#bytes.length;
  }

  /** Returns whether the text fits. */
  add(ms: number, text: string): boolean {
    const bytes = this.#bytes;
    const at = this.#used;
    const { length } = text;
    if (at + numbersSize + maxCharacterSize * length > bytes.length) return false;
    const time = Math.round(ms * 100);
    const since = time - this.#last;
    const size = bytes.write(text, at + numbersSize);
    bytes[at] = since;
    bytes[at + 1] = since >>> 8;
    bytes[at + 2] = since >>> 16;
    bytes[at + 3] = since >>> 24;
    bytes[at + 4] = size;
    bytes[at + 5] = size >>> 8;
    this.#last = time;
    this.#used = at + numbersSize + size;
    this.count++;
    this.characters += length;
    return true;
  }

  texts(): TimedText[] {
    const bytes = this.#bytes;
    const texts: TimedText[] = [];
    let time = this.#first;
    for (let at = 0; at < this.#used;) {
      time += bytes.readUInt32LE(at);
      const start = at + numbersSize;
      at = start + bytes.readUInt16LE(start - 2);
      texts.push({ ms: time / 100, text: bytes.toString("utf8", start, at) });
    }
    return texts;
  }
}

/** The size of a string and its entry without the characters, in bytes. */
export const bytesPerText = 96;

/** The maximum size of a text in memory, in bytes. */
export function textBytes(text: string): number {
  return bytesPerText + 2 * text.length;
}

const blockMeasures: Measures<TextBlock | string> = {
  bytes: (item) => (item instanceof TextBlock ? item.size : textBytes(item)),
  characters: (item) => (item instanceof TextBlock ? item.characters : item.length),
  chunks: (item) => (item instanceof TextBlock ? item.count : 1),
};

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
function copied(text: string, start: number, end: number): string {
  return decoder.decode(encoder.encode(text.slice(start, end)));
}

/** The last position up to `end` that is not within a surrogate pair. */
function characterBoundary(text: string, end: number): number {
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
