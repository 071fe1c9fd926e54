import type { Reading } from "./cursor.ts";
import type { Desk } from "./desk.ts";
import { readToMarker } from "./marker-set.ts";
import type { Role } from "./plan.ts";
import { readBareCall, readCallBehind } from "./read-call.ts";
import { readThought } from "./read-thought.ts";
import type { Start } from "./start.ts";

/**
 * Reads a plain text: visible text, thoughts and calls, up to one of `ends` or the end. Gives whether an end was found; it is passed
 * and pending.
 */
export function* readPlain(desk: Desk, start: Start, ends: readonly string[] = []): Reading<boolean> {
  const { cursor, output, plan } = desk;
  const { reasoning } = plan.format;
  const markup = plan.markup({ calls: desk.callsAllowed, ends });
  let mayThink = reasoning !== undefined;
  /** Something visible came. */
  let seen = false;
  let afterCall = false;
  const think = function* think(raw: string, assumed: boolean): Reading<void> {
    output.openThought(raw);
    yield* readThought(desk, assumed);
    mayThink = reasoning?.anywhere === true;
  };
  const visible = (text: string): void => {
    if (text.trim() !== "") {
      seen = true;
      afterCall = false;
    }
    output.text(text);
  };
  if (start.place === "inside") yield* think("", start.assumed);
  if (start.place === "unknown") mayThink = !(yield* readUnknown(desk, markup.set.markers)) && mayThink;
  if (desk.callsAllowed) yield* readBareCall(desk);
  for (;;) {
    const found = yield* readToMarker(cursor, markup.set, (kept) => visible(cursor.take(kept)));
    const role = markup.roles[found];
    if (role === undefined) return false;
    if (role.ends) return true;
    if (role.opensThought && mayThink && (!seen || reasoning?.anywhere === true)) {
      yield* think(cursor.take(), start.assumed && !seen);
      if (desk.callsAllowed && !seen) yield* readBareCall(desk);
    } else if (role.opensSection || role.calls !== null || role.bareCalls !== null) {
      output.phase = "call";
      afterCall = yield* readCallBehind(desk, role, markup.set.markers[found] ?? "");
      output.phase = "content";
      if (!afterCall && plan.format.invalid === "drop") yield* dropCall(desk);
      else if (!afterCall) visible(cursor.take());
    } else if (!(yield* passMarker(desk, role, afterCall, seen))) visible(cursor.take());
  }
}

/** A call that does not parse vanishes, up to its close or the end of the text. */
function* dropCall({ cursor, output, plan }: Desk): Reading<void> {
  const { section, calls } = plan.format;
  const closes = plan.set("all closes", () => [
    ...(section?.close ?? []),
    ...calls.flatMap((call) => call.close ?? []),
  ]);
  const sectionCloses = section?.close.length ?? 0;
  for (;;) {
    const found = yield* readToMarker(cursor, closes, (kept) => output.markup(cursor.take(kept)));
    output.markup(cursor.take());
    if (found < 0 || found < sectionCloses || sectionCloses === 0) return;
  }
}

/** A marker that opens nothing to read. Gives whether it vanished; else it is text. */
function* passMarker(desk: Desk, role: Role, afterCall: boolean, seen: boolean): Reading<boolean> {
  const { cursor, output, plan } = desk;
  if (role.dropTo !== null) {
    const close = role.dropTo;
    const set = plan.set(`drop ${close}`, () => [close]);
    yield* readToMarker(cursor, set, (kept) => output.markup(cursor.take(kept)));
    output.markup(cursor.take());
    return true;
  }
  const stray = plan.format.reasoning?.strayClose ?? "text";
  const vanishes =
    role.strips ||
    (role.closesCall && afterCall) ||
    (role.closesThought && (stray === "strip" || (stray === "strip-at-start" && !seen)));
  if (vanishes && role.closesCall && afterCall) output.closer(cursor.take());
  else if (vanishes) output.markup(cursor.take());
  return vanishes;
}

/**
 * The beginning of a text that may or may not be a thought. Nothing is let out until its close shows that it is one, or another marker
 * or the end of the text shows that it is not. Returns whether it was a thought.
 */
function* readUnknown(desk: Desk, markers: readonly string[]): Reading<boolean> {
  const { cursor, output, plan } = desk;
  const { reasoning } = plan.format;
  if (!reasoning) return false;
  const set = plan.set(`unknown ${markers.join(" ")}`, () => markers);
  const isOpen = new Set<string>(reasoning.open);
  const isClose = new Set<string>(reasoning.close);
  for (let first = true; ; first = false) {
    const found = yield* readToMarker(cursor, set, () => {});
    const marker = set.markers[found] ?? "";
    const thought = cursor.pending - marker.length;
    if (isOpen.has(marker) && (!first || thought > 0)) continue;
    if (isClose.has(marker) && thought > 0) {
      const raw = cursor.take();
      output.openThought("");
      output.thought(raw.slice(0, -marker.length));
      output.closeThought(marker);
      return true;
    }
    cursor.pos -= marker.length;
    return false;
  }
}
