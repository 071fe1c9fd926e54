import type { Reading } from "./cursor.ts";
import type { CallAtHand, CallDesk, CallOutcome } from "./desk.ts";
import { readToMarker } from "./marker-set.ts";

/**
 * Ends a call that turned out bad. If it was announced, the rest of it, up to its close, belongs to it: it is no visible text. Else all
 * of it is pending, and none of it was a call.
 */
export function* failCall(desk: CallDesk, call: CallAtHand): Reading<CallOutcome> {
  if (!call.announced) return "none";
  const { cursor, plan } = desk;
  const { section, calls } = plan.format;
  const closes = plan.set("all closes", () => [
    ...(section?.close ?? []),
    ...calls.flatMap(({ close }) => close ?? []),
  ]);
  if (closes.markers.length > 0) {
    const found = yield* readToMarker(cursor, closes, (kept) => call.write("", cursor.take(kept)));
    cursor.pos -= closes.markers[found]?.length ?? 0;
  }
  call.end("failed");
  return "failed";
}
