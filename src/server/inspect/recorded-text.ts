import type { Header, KeptText, TapeContents, TimedText } from "../../inspect/inspected-request.ts";
import type { Mask } from "../mask.ts";

/** How much of a tape's room a piece takes. */
export interface Measures<T> {
  /** What it takes in memory, its place on the tape included. */
  bytes(piece: T): number;
  /** Of its text. */
  characters(piece: T): number;
}

/** The share of the limit that the beginning may take; what comes last has the rest. */
const headShare = 1 / 4;

/**
 * A bounded record of pieces that come one after another: of what is too long, the beginning and the end are kept. Pieces and their times
 * stand in arrays of their own: an object for each piece would be one more for the garbage collector.
 */
export class Tape<T> {
  readonly #measures: Measures<T>;
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head: T[] = [];
  readonly #headTimes: number[] = [];
  #headBytes = 0;
  #headIsFull = false;
  /** The oldest stands at `#first`; what is before it was left out, and is cleared now and then. */
  #tail: T[] = [];
  #tailTimes: number[] = [];
  #first = 0;
  #tailBytes = 0;
  #leftOutPieces = 0;
  #leftOutCharacters = 0;

  /** `limit`: in bytes. */
  constructor(limit: number, measures: Measures<T>) {
    this.#measures = measures;
    this.#headLimit = limit * headShare;
    this.#tailLimit = limit - this.#headLimit;
  }

  /** What it holds, in bytes; at most the limit. */
  get bytes(): number {
    return this.#headBytes + this.#tailBytes;
  }

  /** `ms`: when it came. Returns by how many bytes the tape has grown; below 0 where more was left out. */
  add(ms: number, piece: T): number {
    const bytes = this.#measures.bytes(piece);
    if (!this.#headIsFull && this.#headBytes + bytes <= this.#headLimit) {
      this.#head.push(piece);
      this.#headTimes.push(ms);
      this.#headBytes += bytes;
      return bytes;
    }
    const before = this.#tailBytes;
    this.#headIsFull = true;
    this.#tail.push(piece);
    this.#tailTimes.push(ms);
    this.#tailBytes += bytes;
    while (this.#tailBytes > this.#tailLimit) this.#dropOldest();
    return this.#tailBytes - before;
  }

  /** `show`: what becomes of a piece and its time. */
  contents<U>(show: (ms: number, piece: T) => U): TapeContents<U> {
    const shown = (pieces: readonly T[], times: readonly number[]): U[] =>
      pieces.map((piece, at) => show(times[at] ?? 0, piece));
    const head = shown(this.#head, this.#headTimes);
    const tail = shown(this.#tail.slice(this.#first), this.#tailTimes.slice(this.#first));
    const [pieces, characters] = [this.#leftOutPieces, this.#leftOutCharacters];
    if (pieces === 0) return { pieces: [...head, ...tail] };
    return { pieces: [...head, ...tail], left_out: { after: head.length, pieces, characters } };
  }

  #dropOldest(): void {
    const oldest = this.#tail[this.#first] as T;
    this.#first++;
    this.#tailBytes -= this.#measures.bytes(oldest);
    this.#leftOutPieces++;
    this.#leftOutCharacters += this.#measures.characters(oldest);
    if (this.#first < mostDropped && this.#first < this.#tail.length) return;
    this.#tail = this.#tail.slice(this.#first);
    this.#tailTimes = this.#tailTimes.slice(this.#first);
    this.#first = 0;
  }
}

/** So many pieces that were left out may still be in memory. */
const mostDropped = 256;

/** A tape of texts. A tape keeps or drops whole pieces, so a long text is added in several. */
export class TextTape {
  readonly #tape: Tape<string>;
  readonly #longest: number;

  /** `limit`: in bytes. */
  constructor(limit: number) {
    this.#tape = new Tape(limit, measures);
    this.#longest = Math.max(16, Math.floor(limit / 32));
  }

  /** Returns by how many bytes the tape has grown. */
  add(ms: number, text: string): number {
    if (text.length <= this.#longest) return this.#tape.add(ms, text);
    let grown = 0;
    for (let from = 0; from < text.length;) {
      const end = wholeCharacters(text, Math.min(text.length, from + this.#longest));
      grown += this.#tape.add(ms, copied(text, from, end));
      from = end;
    }
    return grown;
  }

  contents(): TapeContents<TimedText> {
    return this.#tape.contents(timed);
  }
}

const measures = { bytes: textBytes, characters: ({ length }: string): number => length };

function timed(ms: number, text: string): TimedText {
  return { ms: Math.round(ms * 100) / 100, text };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A part of a text that shares no memory with it: an engine keeps the whole of a text in memory for the sake of a part. */
export function copied(text: string, start: number, end: number): string {
  return decoder.decode(encoder.encode(text.slice(start, end)));
}

/** The last place up to `end` where a text can be cut: not within a character. */
export function wholeCharacters(text: string, end: number): number {
  const unit = text.charCodeAt(end);
  return end < text.length && unit >= 0xdc00 && unit < 0xe000 ? end - 1 : end;
}

/** As much of a text's beginning as may be kept. `limit`: in bytes. */
export function keptText(text: string, limit: number): KeptText {
  const most = Math.floor(limit / 2);
  if (text.length <= most) return { text };
  const end = wholeCharacters(text, most);
  return { text: copied(text, 0, end), left_out: text.length - end };
}

/** What a string and what holds it take beside its characters, in bytes. */
const perText = 96;

/** At most so many bytes does a text take in memory. */
export function textBytes(text: string): number {
  return perText + 2 * text.length;
}

/**
 * Names of headers that may carry a secret: a browser's WebSocket has no other place for a key than the names of its protocols. What tells of
 * a client's rates has similar names and no secret.
 */
const secret = /auth|key|token|secret|cookie|session|password|credential|sig|^sec-websocket-protocol$/i;
const harmless = /ratelimit/i;

/** Headers without secrets: the values of those with such names, and what the configuration calls secret in others. */
export function maskedHeaders(headers: readonly Header[], mask: Mask): Header[] {
  return headers.map(([name, value]) => {
    if (!secret.test(name) || harmless.test(name)) return [name, mask.text(value)];
    // Which kind of key it is, says nothing of the key.
    const [, scheme = ""] = /^(Bearer |Basic )/i.exec(value) ?? [];
    return [name, `${scheme}[key]`];
  });
}

/**
 * A recorded text without secrets. One may be cut anywhere by the pieces; where there is one, the pieces become one on each side of what
 * was left out, and places in the text are not what they were (`isChanged`).
 */
export function maskedTape(
  tape: TapeContents<TimedText>,
  mask: Mask,
): { readonly tape: TapeContents<TimedText>; readonly isChanged: boolean } {
  const { pieces, left_out: leftOut } = tape;
  const at = leftOut?.after ?? pieces.length;
  const head = masked(pieces.slice(0, at), mask);
  const tail = masked(pieces.slice(at), mask);
  if (!head && !tail) return { tape, isChanged: false };
  const before = head ?? pieces.slice(0, at);
  return {
    tape: {
      pieces: [...before, ...(tail ?? pieces.slice(at))],
      ...(leftOut && { left_out: { ...leftOut, after: before.length } }),
    },
    isChanged: true,
  };
}

/** null: there is nothing to mask. */
function masked(pieces: readonly TimedText[], mask: Mask): TimedText[] | null {
  if (mask.isEmpty) return null;
  const text = pieces.map((piece) => piece.text).join("");
  const shown = mask.text(text);
  return shown === text ? null : [{ ms: pieces[0]?.ms ?? 0, text: shown }];
}
