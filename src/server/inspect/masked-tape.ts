import type { TimedText, TapeContents } from "../../inspect/inspected-request.ts";
import type { Mask } from "../mask.ts";

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
