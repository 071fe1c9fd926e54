import type { NamedCall } from "../format.ts";
import type { Reading } from "./cursor.ts";
import type { CallOutcome, Desk } from "./desk.ts";

export function* readNamedCall(_desk: Desk, _call: NamedCall, _bracket: boolean): Reading<CallOutcome> {
  return "none";
}
