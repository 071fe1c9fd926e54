import type { NamedCall } from "../format.ts";
import type { Reading } from "./cursor.ts";
import { CallAtHand } from "./desk.ts";
import type { CallDesk, CallOutcome } from "./desk.ts";
import { matchMarker, readToMarker } from "./marker-set.ts";
import { failCall } from "./fail-call.ts";
import { passFence } from "./pass-fence.ts";
import { Pile } from "./pile.ts";
import { readHead } from "./read-head.ts";
import type { Head } from "./read-head.ts";
import { streamJson } from "./read-json.ts";
import { readLoose } from "./read-loose.ts";
import { readPythonCalls } from "./read-python-calls.ts";
import { readTagged } from "./read-tagged.ts";
import { recordCall } from "./recorder.ts";

/** Reads a call, or several, behind its opener; `bracket`: behind a `[` as well. */
export function* readNamedCall(desk: CallDesk, call: NamedCall, bracket: boolean): Reading<CallOutcome> {
  const { args } = call;
  if (args.kind === "kwargs") return yield* readPythonCalls(desk, call, bracket);
  if (bracket) return "none";
  const head = yield* readHead(desk, call);
  if (head === null) return "none";
  if (head.name === "") return (yield* passEmptyCall(desk, call)) ? "read" : "none";
  switch (args.kind) {
    case "json":
      return yield* readJsonArguments(desk, call, head);
    case "loose":
      return yield* readLoose(desk, call, args.quotes, head);
    case "tagged":
      if (args.strict !== true) return yield* readTagged(desk, call, args, head);
      return yield* recordCall(desk, (recording) => readTagged(recording, call, args, head));
  }
}

/** A call without a name is no call. With nothing in it either, it is not even text. */
function* passEmptyCall({ cursor, output, plan }: CallDesk, call: NamedCall): Reading<boolean> {
  yield* cursor.skipSpace();
  const closes = plan.set("close", () => call.close ?? [], call);
  if (call.headEndKept || (yield* matchMarker(cursor, closes)) < 0) return false;
  output.closer(cursor.take());
  return true;
}

/** Arguments that are JSON, perhaps in a code fence; none at all is an empty object. */
function* readJsonArguments(desk: CallDesk, call: NamedCall, head: Head): Reading<CallOutcome> {
  const { cursor, plan } = desk;
  const atHand = new CallAtHand(desk, head.name, head.id);
  if (plan.format.invalid === "raw") return yield* readRawArguments(desk, call, atHand);
  let code = yield* cursor.skipSpace();
  if (call.fence === true && code === 96) {
    yield* passFence(desk);
    code = yield* cursor.skipSpace();
  }
  if (code === 123) {
    if (!(yield* streamJson(cursor, atHand))) return yield* failCall(desk, atHand);
    if (call.fence === true && (yield* cursor.skipSpace()) === 96) yield* passFence(desk);
    atHand.end("succeeded");
    return "read";
  }
  const closes = plan.closes(call);
  const found = yield* matchMarker(cursor, closes);
  if (found < 0) return "none";
  cursor.pos -= closes.markers[found]?.length ?? 0;
  atHand.json("{}");
  atHand.end("succeeded");
  return "read";
}

/** Everything up to the close is the arguments, whether it is JSON or not. */
function* readRawArguments(desk: CallDesk, call: NamedCall, atHand: CallAtHand): Reading<CallOutcome> {
  const { cursor, plan } = desk;
  const closes = plan.closes(call);
  yield* cursor.skipSpace();
  atHand.announce();
  const space = new Pile();
  const found = yield* readToMarker(cursor, closes, (kept) => {
    const raw = cursor.take(kept);
    const text = raw.trimEnd();
    atHand.write(text === "" ? "" : space.take() + text, raw);
    space.add(raw.slice(text.length));
  });
  if (found >= 0) cursor.pos -= closes.markers[found]?.length ?? 0;
  atHand.end("succeeded");
  return "read";
}
