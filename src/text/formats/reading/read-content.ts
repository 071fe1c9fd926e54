import { type CallContext, type CallOutcome, type ParseContext, recordCall, skipFence } from "./call-output.ts";
import type { CallCandidates, MarkerRole } from "./compiled-format.ts";
import { notYet, type Parser } from "./cursor.ts";
import { matchMarker, readToMarker } from "./marker-set.ts";
import { readNamedCall } from "./read-named-call.ts";
import { readObjectCalls } from "./read-object-call.ts";
import type { Start } from "../reasoning.ts";

/**
 * Reads visible text, reasoning and calls, up to one of `ends` or the end of the text. Returns whether one of `ends` was found; it is
 * passed and pending.
 */
export function* readPlain(context: ParseContext, start: Start, ends: readonly string[] = []): Parser<boolean> {
  const { cursor, output, format, callsAllowed } = context;
  const { reasoning, invalid } = format.description;
  const { set, roles } = format.markers(callsAllowed, ends);
  let mayReason = reasoning !== undefined;
  /** Visible text has come. */
  let seen = false;
  let afterCall = false;
  /** A call ended the reasoning before the model closed it. */
  let interrupted = false;
  const reason = function* (raw: string, assumed: boolean): Parser<void> {
    output.startReasoning(raw);
    interrupted = !(yield* readReasoning(context, assumed));
    mayReason = reasoning?.anywhere === true;
  };
  const visible = (text: string): void => {
    if (text.trim() !== "") {
      seen = true;
      afterCall = false;
    }
    output.text(text);
  };
  if (start.place === "inside") yield* reason("", start.assumed);
  if (start.place === "unknown") mayReason = !(yield* readUnopenedReasoning(context, set.markers)) && mayReason;
  if (callsAllowed) yield* readBareCall(context);
  for (;;) {
    const found = yield* readToMarker(cursor, set, visible);
    const role = roles[found];
    if (role === undefined) return false;
    if (role.ends) return true;
    if (role.opensReasoning && mayReason && (!seen || reasoning?.anywhere === true)) {
      yield* reason(cursor.take(), start.assumed && !seen);
      if (callsAllowed && !seen) yield* readBareCall(context);
    } else if (role.opensSection || role.calls !== null || role.bareCalls !== null) {
      output.phase = "call";
      afterCall = yield* readCalls(context, role, set.length(found));
      output.phase = "content";
      if (!afterCall && invalid === "drop") yield* dropCall(context);
      // The model may go on with its reasoning after the call, or after a word that is no call, and close it then.
      else if (interrupted && !output.mergesReasoning && (yield* readUnopenedReasoning(context, set.markers, true))) {
        interrupted = false;
      } else if (!afterCall) visible(cursor.take());
    } else if (role.dropTo !== null) {
      const close = role.dropTo;
      yield* readToMarker(
        cursor,
        format.set(`drop ${close}`, () => [close]),
        (raw) => output.markup(raw),
      );
      output.markup(cursor.take());
    } else if (role.closesCall && afterCall) output.closer(cursor.take());
    else if (role.closesReasoning && interrupted) {
      interrupted = false;
      output.startReasoning("");
      output.endReasoning(cursor.take());
    } else if (role.isStripped || (role.closesReasoning && stripsStrayClose(context, seen)))
      output.markup(cursor.take());
    else visible(cursor.take());
  }
}

/** Whether a reasoning close outside of reasoning is removed. */
function stripsStrayClose({ format }: ParseContext, seen: boolean): boolean {
  const stray = format.description.reasoning?.strayClose;
  return stray === "strip" || (stray === "strip-at-start" && !seen);
}

/** Removes a call that does not parse, up to its close or the end of the text. */
function* dropCall({ cursor, output, format }: ParseContext): Parser<void> {
  const sectionCloses = format.description.section?.close.length ?? 0;
  for (;;) {
    const found = yield* readToMarker(cursor, format.allCloses(), (raw) => output.markup(raw));
    output.markup(cursor.take());
    if (found < 0 || found < sectionCloses || sectionCloses === 0) return;
  }
}

/**
 * Reads reasoning up to its close, a marker that ends it without being part of it, or the end of the text. The cursor is after the opener;
 * `assumed`: the opener was not seen. Returns false if such a marker ended it.
 */
function* readReasoning({ cursor, output, format }: ParseContext, assumed: boolean): Parser<boolean> {
  const { reasoning } = format.description;
  if (!reasoning) return true;
  if (assumed || reasoning.anywhere === true) {
    // The model may write the opener itself, or twice: that is not reasoning text.
    const openers = format.set("reasoning opener", () => reasoning.open);
    do yield* cursor.skipSpace();
    while ((yield* matchMarker(cursor, openers)) >= 0);
    output.reasoningMarkup(cursor.take());
  }
  if (reasoning.label !== undefined) {
    const { label } = reasoning;
    // Empty reasoning may have the label without the white space after it.
    const word = label.trimEnd();
    const labels = format.set("reasoning label", () => [label, ...reasoning.close.map((close) => word + close)]);
    const found = yield* matchMarker(cursor, labels);
    if (found > 0) cursor.pos -= labels.length(found) - word.length;
    if (found >= 0) output.reasoningMarkup(cursor.take());
  }
  const ends = format.set("reasoning ends", () => [...reasoning.close, ...(reasoning.endedBy ?? [])]);
  const found = yield* readToMarker(cursor, ends, (raw) => output.reasoning(raw));
  if (found < 0) return true;
  const isClosed = found < reasoning.close.length;
  if (!isClosed) cursor.pos -= ends.length(found);
  output.endReasoning(cursor.take());
  return isClosed;
}

/**
 * Reads text that may be reasoning without an opener: at the beginning, or where a call may have interrupted the reasoning. Nothing is
 * emitted until a reasoning close shows that it is reasoning, or another marker or the end of the text shows that it is not. Returns
 * whether it was reasoning.
 */
function* readUnopenedReasoning(
  { cursor, output, format }: ParseContext,
  markers: readonly string[],
  resumes = false,
): Parser<boolean> {
  const { reasoning } = format.description;
  if (!reasoning) return false;
  const set = format.set(`unknown ${markers.join(" ")}`, () => markers);
  for (let first = true; ; first = false) {
    const found = yield* readToMarker(cursor, set);
    const marker = set.markers[found] ?? "";
    const length = cursor.pending - marker.length;
    if (reasoning.open.includes(marker) && (!first || length > 0)) continue;
    if (reasoning.close.includes(marker) && length > 0) {
      const raw = cursor.take();
      output.startReasoning("", resumes);
      output.reasoning(raw.slice(0, length));
      output.endReasoning(marker);
      return true;
    }
    cursor.pos -= marker.length;
    return false;
  }
}

/**
 * Reads calls after the opener of a section or a call, which has `length` characters. Returns false, with everything pending, if there is
 * no call.
 */
function* readCalls(context: ParseContext, role: MarkerRole, length: number): Parser<boolean> {
  const { cursor, output, format } = context;
  if (!role.opensSection) {
    if (role.calls !== null) return (yield* readOneOf(context, role.calls, false)) !== "none";
    if (role.bareCalls === null) return false;
    cursor.pos -= length;
    return (yield* readOneOf(context, role.bareCalls, true)) !== "none";
  }
  const { section, calls } = format.description;
  const [sectionCloses, sectionOpens] = [section?.close ?? [], section?.open ?? []];
  const markers = format.set("calls in a section", () => [
    ...sectionCloses,
    ...sectionOpens,
    ...calls.flatMap((call) => call.open ?? []),
  ]);
  let any = false;
  for (;;) {
    yield* cursor.skipSpace();
    const found = yield* matchMarker(cursor, markers);
    if (found >= 0 && found < sectionCloses.length) {
      if (any) output.closer(cursor.take());
      return any;
    }
    if (found >= 0 && found < sectionCloses.length + sectionOpens.length) continue;
    const candidates = format.callsAfter(markers.markers[found]);
    if (candidates.calls.length === 0) break;
    output.phase = "call";
    if ((yield* readOneOf(context, candidates, false)) === "none") break;
    any = true;
  }
  // The section ends without a close: what follows is visible text.
  if (any) output.text(cursor.take());
  return any;
}

/** Reads calls without an opener where the visible text begins. */
function* readBareCall(context: ParseContext): Parser<void> {
  const { cursor, output, format } = context;
  const { bare } = format;
  if (bare.calls.length === 0) return;
  yield* cursor.skipSpace();
  output.phase = "call";
  const outcome = bare.calls.some((call) => call.bare === "whole")
    ? yield* recordCall(
        context,
        (recording) => readOneOf(recording, bare, true),
        function* isWholeText() {
          return (yield* cursor.skipSpace()) < 0;
        },
      )
    : yield* readOneOf(context, bare, true);
  if (outcome !== "none") return;
  output.phase = "content";
  output.text(cursor.take());
}

/** Reads one of the possible calls; what follows the opener decides which. */
function* readOneOf(
  context: CallContext,
  { openers, objects, named }: CallCandidates,
  bare: boolean,
): Parser<CallOutcome> {
  const { cursor } = context;
  let code = cursor.skipAvailableSpace();
  if (code === notYet) code = yield* cursor.skipSpace();
  // A model may write the opener twice.
  if (!bare) while ((yield* matchMarker(cursor, openers)) >= 0) code = yield* cursor.skipSpace();
  const fence = code === 96 && objects.some((call) => call.fence);
  if (fence) {
    if (!(yield* skipFence(context))) return "none";
    code = yield* cursor.skipSpace();
  }
  const bracket = code === 91;
  if (bracket) {
    cursor.pos++;
    code = yield* cursor.skipSpace();
  }
  if (code === 123) {
    const object = objects.find((call) => (call.list === "array") === bracket);
    if (object) return yield* readObjectCalls(context, object, { bracket, fence, bare });
  }
  return named ? yield* readNamedCall(context, named, bracket) : "none";
}
