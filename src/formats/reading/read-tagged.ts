import type { NamedCall, TaggedArgs } from "../format.ts";
import { awaited } from "./cursor.ts";
import type { Reading } from "./cursor.ts";
import { CallAtHand } from "./desk.ts";
import type { CallDesk, CallOutcome } from "./desk.ts";
import { matchMarker, readToMarker } from "./marker-set.ts";
import { failCall } from "./fail-call.ts";
import type { Head } from "./read-head.ts";
import { streamJson } from "./read-json.ts";
import { readKey, readParameter, readWrapped } from "./read-parameter.ts";

/** Reads the parameters of a call, a tag each, behind its head, and the call's close. */
export function* readTagged(desk: CallDesk, call: NamedCall, args: TaggedArgs, head: Head): Reading<CallOutcome> {
  const { cursor, plan } = desk;
  const atHand = new CallAtHand(desk, head.name, head.id);
  const closes = plan.closes(call);
  const items = plan.set("tags", () => [args.open, ...closes.markers], closes);
  const seen = new Set<string>();
  const finish = (): CallOutcome => {
    if (cursor.cut && cursor.ended) {
      atHand.end("failed");
      return "failed";
    }
    atHand.json(seen.size === 0 ? "{}" : "}");
    atHand.end("succeeded");
    return "read";
  };
  if (head.empty) return finish();
  for (let first = true; ; first = false) {
    let code = cursor.skipSpaceNow();
    if (code === awaited) code = yield* cursor.skipSpace();
    if (first && args.jsonBody === true && code === 123) return yield* readBody(desk, atHand, call);
    const found = yield* matchMarker(cursor, items);
    if (found < 0) {
      if (code < 0 && first && head.end.trim() !== "" && args.strict !== true) {
        // The name is there and nothing else: a call that was cut.
        atHand.end("failed");
        return "failed";
      }
      if (code < 0) return first || args.strict === true ? "none" : finish();
      if (first || args.strict === true) return "none";
      // Not a parameter: it is passed over up to what is one, or to the end of the call.
      const next = yield* readToMarker(cursor, items, (kept) => atHand.write("", cursor.take(kept)));
      if (next < 0) return finish();
      cursor.pos -= items.markers[next]?.length ?? 0;
      continue;
    }
    if (found > 0) {
      // The close of a section belongs to the section.
      if (found > (call.close?.length ?? 0)) cursor.pos -= items.markers[found]?.length ?? 0;
      return finish();
    }
    const key = yield* readKey(desk, args);
    if (key === null) return atHand.announced ? finish() : "none";
    const declared = desk.types.parameter(head.name, key.name);
    if (args.strict === true && (seen.has(key.name) || (declared === undefined && desk.types.declares(head.name)))) {
      return "none";
    }
    if (seen.size === 0 && args.unwrap?.includes(key.name) && declared === undefined) {
      if (yield* readWrapped(desk, atHand, args, closes, key)) return "read";
      seen.add(key.name);
      continue;
    }
    const lead = `${seen.size === 0 ? "{" : ","}${JSON.stringify(key.name)}:`;
    if (yield* readParameter(desk, atHand, args, closes, key, lead, declared)) seen.add(key.name);
  }
}

/** A JSON object in place of the tags. */
function* readBody(desk: CallDesk, atHand: CallAtHand, call: NamedCall): Reading<CallOutcome> {
  const { cursor, plan } = desk;
  if (!(yield* streamJson(cursor, atHand))) return yield* failCall(desk, atHand);
  yield* cursor.skipSpace();
  yield* matchMarker(
    cursor,
    plan.set("close", () => call.close ?? [], call),
  );
  atHand.end("succeeded");
  return "read";
}
