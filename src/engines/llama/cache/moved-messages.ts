import { sameMessage } from "./prompt-outline.ts";
import type { MessageMark } from "./prompt-outline.ts";

/**
 * Whether the messages from `index` on are earlier ones, moved forward because others before them are gone, or backward because others
 * came before them. Linear in the number of messages.
 */
export function movedMessages(
  known: readonly MessageMark[],
  asked: readonly MessageMark[],
  index: number,
): "messages-dropped" | "message-inserted" | undefined {
  const formerly = known.slice(index);
  const now = asked.slice(index);
  const ofKnown = commonLengths(formerly, now);
  const ofAsked = commonLengths(now, formerly);
  for (let by = 1; by < Math.max(formerly.length, now.length); by++) {
    if (goesOn(ofKnown[by], formerly.length - by, now.length)) return "messages-dropped";
    if (goesOn(ofAsked[by], formerly.length, now.length - by)) return "message-inserted";
  }
  return undefined;
}

/** So many messages are the same in both, of so many that are left of each: all, as far as both have any. */
function goesOn(same = 0, ofKnown: number, ofAsked: number): boolean {
  const count = Math.min(ofKnown, ofAsked);
  // One alone proves nothing where more were known: it may be a short one ("Go on.") that is said often.
  if (count < 1 || (count === 1 && ofKnown > 1)) return false;
  return same >= count;
}

/** For each place of a list: how many messages from there on are those that the other list begins with. This is the Z algorithm. */
function commonLengths(list: readonly MessageMark[], other: readonly MessageMark[]): number[] {
  // Nothing is the same as what stands between the two.
  const all = [...other, undefined, ...list];
  const lengths = [0];
  /** Of all places so far, the one whose common messages end last, and that end. */
  let from = 0;
  let end = 0;
  for (let at = 1; at < all.length; at++) {
    let length = at < end ? Math.min(end - at, lengths[at - from] ?? 0) : 0;
    for (let one = all[length]; one && sameMessage(one, all[at + length]); one = all[length]) length++;
    if (at + length > end) [from, end] = [at, at + length];
    lengths.push(length);
  }
  return lengths.slice(other.length + 1);
}
