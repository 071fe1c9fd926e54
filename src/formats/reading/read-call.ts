import { awaited } from "./cursor.ts";
import type { Reading } from "./cursor.ts";
import type { CallDesk, CallOutcome, Desk } from "./desk.ts";
import { matchMarker } from "./marker-set.ts";
import type { Candidates, Role } from "./plan.ts";
import { passFence } from "./pass-fence.ts";
import { readNamedCall } from "./read-named-call.ts";
import { readObjectCalls } from "./read-object-call.ts";
import { recordCall } from "./recorder.ts";

/** Reads what stands behind an opener of a section or of a call. Gives false, with all of it pending, if that is no call. */
export function* readCallBehind(desk: Desk, role: Role, marker: string): Reading<boolean> {
  const { cursor, output, plan } = desk;
  const { section, calls } = plan.format;
  if (!role.opensSection) {
    if (role.calls !== null) return (yield* readOneOf(desk, role.calls, false)) !== "none";
    if (role.bareCalls === null) return false;
    cursor.pos -= marker.length;
    return (yield* readOneOf(desk, role.bareCalls, true)) !== "none";
  }
  const openers = plan.set("calls in a section", () => [
    ...(section?.close ?? []),
    ...(section?.open ?? []),
    ...calls.flatMap((call) => call.open ?? []),
  ]);
  const closes = section?.close.length ?? 0;
  const opens = section?.open.length ?? 0;
  let any = false;
  for (;;) {
    yield* cursor.skipSpace();
    const found = yield* matchMarker(cursor, openers);
    if (found >= 0 && found < closes) {
      if (any) output.closer(cursor.take());
      return any;
    }
    if (found >= 0 && found < closes + opens) continue;
    const opener = found < 0 ? undefined : openers.markers[found];
    const candidates = plan.behind(opener);
    if (candidates.calls.length === 0) break;
    output.phase = "call";
    const outcome = yield* readOneOf(desk, candidates, false);
    if (outcome === "none") break;
    any = true;
  }
  // The section just stops: what follows is visible text.
  if (any) output.text(cursor.take());
  return any;
}

/** Reads calls that have no marker, where the visible text begins. */
export function* readBareCall(desk: Desk): Reading<void> {
  const { cursor, output, plan } = desk;
  const { bare } = plan;
  if (bare.calls.length === 0) return;
  yield* cursor.skipSpace();
  output.phase = "call";
  const whole = bare.calls.some((call) => call.bare === "whole");
  const outcome = whole
    ? yield* recordCall(
        desk,
        (recording) => readOneOf(recording, bare, true),
        function* isAll() {
          return (yield* cursor.skipSpace()) < 0;
        },
      )
    : yield* readOneOf(desk, bare, true);
  if (outcome !== "none") return;
  output.phase = "content";
  output.text(cursor.take());
}

/** What follows the opener decides which of the calls it is. */
function* readOneOf(desk: CallDesk, candidates: Candidates, bare: boolean): Reading<CallOutcome> {
  const { cursor } = desk;
  const { openers, objects, named } = candidates;
  let code = cursor.skipSpaceNow();
  if (code === awaited) code = yield* cursor.skipSpace();
  // A model may write the opener twice.
  if (!bare) while ((yield* matchMarker(cursor, openers)) >= 0) code = yield* cursor.skipSpace();
  const fence = code === 96 && objects.some((call) => call.fence);
  if (fence) {
    if (!(yield* passFence(desk))) return "none";
    code = yield* cursor.skipSpace();
  }
  const bracket = code === 91;
  if (bracket) {
    cursor.pos++;
    code = yield* cursor.skipSpace();
  }
  if (code === 123) {
    const object = objects.find((call) => (call.list === "array") === bracket);
    if (object) return yield* readObjectCalls(desk, object, { bracket, fence, bare });
  }
  return named ? yield* readNamedCall(desk, named, bracket) : "none";
}
