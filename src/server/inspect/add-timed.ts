import type { TimedText } from "../../inspect/inspected-request.ts";
import type { Tape } from "../../inspect/tape.ts";
import { copied, wholeCharacters } from "./copied.ts";
import { textBytes } from "./text-bytes.ts";

/**
 * Adds a text to a tape of so many bytes; a long one in pieces, since a tape keeps or drops whole pieces. Returns by how many bytes the tape
 * has grown.
 */
export function addTimed(tape: Tape<TimedText>, ms: number, text: string, limit: number): number {
  const longest = Math.max(16, Math.floor(limit / 32));
  if (text.length <= longest) return tape.add({ ms, text }, textBytes(text), text.length);
  let grown = 0;
  for (let from = 0; from < text.length;) {
    const end = wholeCharacters(text, Math.min(text.length, from + longest));
    const piece = copied(text, from, end);
    grown += tape.add({ ms, text: piece }, textBytes(piece), piece.length);
    from = end;
  }
  return grown;
}
