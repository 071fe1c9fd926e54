import type { Reading } from "./cursor.ts";
import type { Desk } from "./desk.ts";
import { matchMarker, readToMarker } from "./marker-set.ts";

/**
 * Reads a thought up to its close, to what ends it without belonging to it, or to the end of the text. The cursor stands behind the
 * opener; `assumed`: the opener is only assumed. Returns whether the text goes on.
 */
export function* readThought(desk: Desk, assumed: boolean): Reading<boolean> {
  const { cursor, output, plan } = desk;
  const { reasoning } = plan.format;
  if (!reasoning) return true;
  if (assumed || reasoning.anywhere === true) {
    // The model writes the opener itself, or writes it twice: it is no thought.
    const openers = plan.set("thought opener", () => reasoning.open);
    do yield* cursor.skipSpace();
    while ((yield* matchMarker(cursor, openers)) >= 0);
    output.thoughtMarkup(cursor.take());
  }
  if (reasoning.label !== undefined) {
    const { label } = reasoning;
    // A thought that is empty may have the label without the white space behind it.
    const word = label.trimEnd();
    const labels = plan.set("thought label", () => [label, ...reasoning.close.map((close) => word + close)]);
    const found = yield* matchMarker(cursor, labels);
    if (found > 0) cursor.pos -= (labels.markers[found]?.length ?? 0) - word.length;
    if (found >= 0) output.thoughtMarkup(cursor.take());
  }
  const ends = plan.set("thought ends", () => [...reasoning.close, ...(reasoning.endedBy ?? [])]);
  const found = yield* readToMarker(cursor, ends, (kept) => output.thought(cursor.take(kept)));
  if (found < 0) return false;
  if (found < reasoning.close.length) output.closeThought(cursor.take());
  else {
    cursor.pos -= ends.markers[found]?.length ?? 0;
    output.closeThought("");
  }
  return true;
}
