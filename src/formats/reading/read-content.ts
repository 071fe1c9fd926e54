import { awaited, type Reading } from "./cursor.ts";
import { type CallDesk, type CallOutcome, type Desk, passFence, recordCall } from "./desk.ts";
import { matchMarker, readToMarker } from "./marker-set.ts";
import type { Candidates, Role } from "./plan.ts";
import type { Start } from "./start.ts";
import { readNamedCall } from "./read-named-call.ts";
import { readObjectCalls } from "./read-object-call.ts";

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
