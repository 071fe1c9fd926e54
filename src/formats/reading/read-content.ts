import type { Reading } from "./cursor.ts";
import type { Desk } from "./desk.ts";
import { readToMarker } from "./marker-set.ts";
import type { Role } from "./plan.ts";
import { readCallBehind, readBareCall } from "./read-call.ts";
import { readThought } from "./read-thought.ts";

/** Reads a plain text to its end: visible text, thoughts and calls. */
export function* readPlain(desk: Desk, startsInside: boolean, assumed: boolean): Reading<void> {
  const { cursor, output, plan } = desk;
  const { reasoning } = plan.format;
  let mayThink = reasoning !== undefined;
  if (startsInside) {
    output.openThought("");
    mayThink = (yield* readThought(desk, assumed)) && reasoning?.anywhere === true;
  }
  if (desk.callsAllowed) yield* readBareCall(desk);
  let seen = false;
  let afterCall = false;
  for (;;) {
    const markup = plan.markup({ calls: desk.callsAllowed, inSection: false });
    const found = yield* readToMarker(cursor, markup.set, (kept) => {
      const text = cursor.take(kept);
      if (text.trim() !== "") {
        seen = true;
        afterCall = false;
      }
      output.text(text);
    });
    const role = markup.roles[found];
    if (role === undefined) return;
    if (role.opensThought && mayThink && (!seen || reasoning?.anywhere === true)) {
      output.openThought(cursor.take());
      mayThink = (yield* readThought(desk, false)) && reasoning?.anywhere === true;
      if (desk.callsAllowed && !seen) yield* readBareCall(desk);
    } else if (role.opensSection || role.calls.length > 0) {
      output.phase = "call";
      const read = yield* readCallBehind(desk, role);
      if (!read) {
        output.text(cursor.take());
        output.phase = "content";
        seen = true;
      }
      afterCall = read;
    } else if (!(yield* passMarker(desk, role, afterCall, seen))) {
      output.text(cursor.take());
      seen = true;
      afterCall = false;
    }
  }
}

/** A marker that opens nothing to read. Gives whether it vanished; else it is text. */
function* passMarker(desk: Desk, role: Role, afterCall: boolean, seen: boolean): Reading<boolean> {
  const { cursor, output, plan } = desk;
  if (role.dropTo !== null) {
    const to = plan.set(`drop ${role.dropTo}`, () => [role.dropTo ?? ""]);
    yield* readToMarker(cursor, to, (kept) => output.markup(cursor.take(kept)));
    output.markup(cursor.take());
    return true;
  }
  const stray = plan.format.reasoning?.strayClose ?? "text";
  const vanishes =
    role.strips ||
    (role.closesCall && afterCall) ||
    (role.closesThought && (stray === "strip" || (stray === "strip-at-start" && !seen)));
  if (vanishes) output.markup(cursor.take());
  return vanishes;
}
