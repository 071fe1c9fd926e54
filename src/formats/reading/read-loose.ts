import type { Markers, NamedCall } from "../format.ts";
import type { Reading } from "./cursor.ts";
import { CallAtHand } from "./desk.ts";
import type { CallDesk, CallOutcome } from "./desk.ts";
import { MarkerSet } from "./marker-set.ts";
import type { Head } from "./read-head.ts";
import { readMembers } from "./read-literal.ts";

/** Arguments in loose JSON; the cursor stands at their `{`. */
export function* readLoose(desk: CallDesk, call: NamedCall, quotes: Markers, head: Head): Reading<CallOutcome> {
  const { cursor } = desk;
  if ((yield* cursor.skipSpace()) !== 123) return "none";
  cursor.pos++;
  const atHand = new CallAtHand(desk, head.name, head.id);
  const style = { quotes: new MarkerSet(quotes), bareKeys: true, ends: new MarkerSet(call.close ?? []) };
  const good = yield* readMembers(cursor, style, atHand, 0);
  if (!good && !atHand.announced) return "none";
  atHand.end(good ? "succeeded" : "failed");
  return good ? "read" : "failed";
}
