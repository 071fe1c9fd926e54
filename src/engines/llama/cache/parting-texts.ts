import type { PartingTexts } from "../../../core/cache-miss.ts";

/** How much is told of each side, in characters. */
export const toldCharacters = 80;

/**
 * The texts on both sides of the place where two prompts part, `at` tokens from their beginnings: up to so many characters before it
 * and of each way to go on. A character whose bytes are spread over tokens is whole on its side, or left out at the far end.
 */
export function partingTexts(
  bytesOf: (token: number) => Uint8Array,
  known: ArrayLike<number>,
  asked: ArrayLike<number>,
  at: number,
  { before: mostBefore, after: mostAfter }: { readonly before: number; readonly after: number },
): PartingTexts {
  // A character takes at most four bytes.
  const common = bytesBetween(bytesOf, asked, { to: at }, mostBefore * 4 + 4);
  const whole = wholeCharacters(common);
  const open = common.subarray(whole);
  const after = (tokens: ArrayLike<number>): string => {
    const bytes = bytesBetween(bytesOf, tokens, { from: at }, mostAfter * 4 + 4);
    const text = concat([open, bytes]);
    return first(decode(text.subarray(0, wholeCharacters(text))), mostAfter);
  };
  return {
    before: last(decode(withoutOpenStart(common.subarray(0, whole))), mostBefore),
    known: after(known),
    asked: after(asked),
  };
}

/** The bytes of tokens to one side of a place, at least so many where there are. */
function bytesBetween(
  bytesOf: (token: number) => Uint8Array,
  tokens: ArrayLike<number>,
  side: { readonly from: number } | { readonly to: number },
  enough: number,
): Uint8Array {
  const pieces: Uint8Array[] = [];
  let length = 0;
  const forward = "from" in side;
  const step = forward ? 1 : -1;
  for (let i = forward ? side.from : side.to - 1; i >= 0 && i < tokens.length && length < enough; i += step) {
    const bytes = bytesOf(tokens[i] ?? 0);
    length += bytes.length;
    pieces.push(bytes);
  }
  return concat(forward ? pieces : pieces.reverse());
}

/** How many bytes are whole characters, from the beginning: all but an unfinished one at the end. */
function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needed > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

function withoutOpenStart(bytes: Uint8Array): Uint8Array {
  let start = 0;
  while (start < 3 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

function concat(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** The first and the last characters of a text, in UTF-16 units, none of them cut in two. */
function first(text: string, count: number): string {
  const cut = text.slice(0, count);
  return isHighHalf(cut.charCodeAt(cut.length - 1)) ? cut.slice(0, -1) : cut;
}

export function last(text: string, count: number): string {
  const cut = text.slice(Math.max(0, text.length - count));
  return isLowHalf(cut.charCodeAt(0)) ? cut.slice(1) : cut;
}

function isHighHalf(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isLowHalf(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}
