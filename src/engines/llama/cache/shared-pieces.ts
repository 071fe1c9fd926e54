import { sameMessage } from "./prompt-outline.ts";
import type { MessageMark, TextPiece } from "./prompt-outline.ts";

/** Behind what two texts begin with, they have more in common than not. */
export function sharesRest({ pieces: known }: MessageMark, { pieces: asked }: MessageMark): boolean {
  if (!known || !asked) return false;
  let same = 0;
  while (same < asked.length && asked[same]?.hash === known[same]?.hash) same++;
  const rest = asked.slice(same);
  return 2 * sharedPieces(known.slice(same), rest) > lengthOf(rest);
}

/** How much of a message stands in another one, too, in characters. */
export function sharedLength(known: MessageMark, asked: MessageMark): number {
  if (sameMessage(known, asked)) return asked.length;
  return known.pieces && asked.pieces ? sharedPieces(known.pieces, asked.pieces) : 0;
}

function sharedPieces(known: readonly TextPiece[], asked: readonly TextPiece[]): number {
  const hashes = new Set(known.map(({ hash }) => hash));
  return lengthOf(asked.filter(({ hash, length }) => length > 1 && hashes.has(hash)));
}

function lengthOf(pieces: readonly TextPiece[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}
