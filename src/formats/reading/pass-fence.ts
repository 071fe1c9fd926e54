import type { Reading } from "./cursor.ts";
import type { CallDesk } from "./desk.ts";
import { matchMarker } from "./marker-set.ts";

/** Passes the opening or closing line of a Markdown code fence. Gives whether there was one. */
export function* passFence(desk: CallDesk): Reading<boolean> {
  const { cursor, plan } = desk;
  return (
    (yield* matchMarker(
      cursor,
      plan.set("fence", () => ["```json", "```JSON", "```"]),
    )) >= 0
  );
}
