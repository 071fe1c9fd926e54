import type { Reading } from "./cursor.ts";
import type { Desk } from "./desk.ts";
import { matchMarker, readToMarker } from "./marker-set.ts";

/**
 * Reads a thought up to its close, to what ends it without belonging to it, or to the end of the text. The cursor stands behind the
 * opener; `assumed`: nobody knows whether there was one. Gives whether the text goes on.
 */
export function* readThought(desk: Desk, assumed: boolean): Reading<boolean> {
  const { cursor, output, plan } = desk;
  const { reasoning } = plan.format;
  if (!reasoning) return true;
  if (assumed) {
    // The model writes the opener itself: it is no thought.
    yield* cursor.skipSpace();
    const opener = yield* matchMarker(
      cursor,
      plan.set("thought opener", () => reasoning.open),
    );
    if (opener >= 0) output.markup(cursor.take());
  }
  if (reasoning.label !== undefined) {
    const { label } = reasoning;
    const found = yield* matchMarker(
      cursor,
      plan.set("thought label", () => [label]),
    );
    if (found >= 0) output.markup(cursor.take());
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
