import type { ObjectCall } from "../format.ts";
import { awaited, type Reading } from "./cursor.ts";
import { CallAtHand, type CallDesk, type CallOutcome, failCall, passFence } from "./desk.ts";
import { matchMarker } from "./marker-set.ts";
import { innerObject, readJson, readJsonString, streamJson, streamJsonText } from "./read-json.ts";

/** What stands before the first `{`. */
export interface Before {
  /** The `[` of an array. */
  readonly bracket: boolean;
  /** The first line of a code fence. */
  readonly fence: boolean;
  /** No marker. */
  readonly bare: boolean;
}

/** Reads calls that are JSON objects. The cursor stands at the first `{`. "none": the first object is no call. */
export function* readObjectCalls(desk: CallDesk, call: ObjectCall, before: Before): Reading<CallOutcome> {
  const outcome = yield* readList(desk, call, before);
  if (outcome === "read" && before.fence && (yield* desk.cursor.skipSpace()) === 96) {
    yield* passFence(desk);
    desk.output.closer(desk.cursor.take());
  }
  return outcome;
}

function* readList(desk: CallDesk, call: ObjectCall, { bracket, bare }: Before): Reading<CallOutcome> {
  const { cursor, output } = desk;
  for (let first = true; ; first = false) {
    const outcome = yield* readObject(desk, call, bare);
    if (outcome !== "read") return first ? outcome : "read";
    if (call.list === "one") return "read";
    let code = yield* cursor.skipSpace();
    if (bracket ? code === 44 : code === 44 || code === 59) {
      cursor.pos++;
      code = yield* cursor.skipSpace();
    }
    if (code === 123) continue;
    if (!bracket) return "read";
    while (code === 93) {
      cursor.pos++;
      code = yield* cursor.peek();
    }
    output.closer(cursor.take());
    return "read";
  }
}

function* readObject(desk: CallDesk, call: ObjectCall, bare: boolean, outerId?: string): Reading<CallOutcome> {
  const { cursor, output } = desk;
  let name: string | null = null;
  let id = outerId;
  let isNested = false;
  let held: string | null = null;
  let atHand: CallAtHand | null = null;
  const failed = (): Reading<CallOutcome> => fail(desk, atHand);
  if ((cursor.now() === awaited ? yield* cursor.peek() : cursor.now()) !== 123) return "none";
  cursor.pos++;
  for (let first = true; ; first = false) {
    let code = cursor.skipSpaceNow();
    if (code === awaited) code = yield* cursor.skipSpace();
    if (code === 125) break;
    if (!first) {
      if (code !== 44) return yield* failed();
      cursor.pos++;
      if (cursor.skipSpaceNow() === awaited) yield* cursor.skipSpace();
    }
    const key = yield* readJsonString(cursor);
    code = cursor.skipSpaceNow();
    if (code === awaited) code = yield* cursor.skipSpace();
    if (key === null || code !== 58) return yield* failed();
    // Without a marker, an object that begins otherwise is an answer in JSON, which must not be held back.
    if (bare && first && !mayBegin(call, key)) return "none";
    cursor.pos++;
    code = cursor.skipSpaceNow();
    if (code === awaited) code = yield* cursor.skipSpace();
    if (key === call.nested && code === 123 && atHand === null) {
      const { nested: _, ...inner } = call;
      if ((yield* readObject(desk, inner, bare, id)) === "none") return "none";
      isNested = true;
      continue;
    }
    if (call.name === "key" ? name === null : call.name.includes(key) && name === null) {
      name = call.name === "key" ? key : yield* readJsonString(cursor);
      if (name === null || name === "") return "none";
      if (bare && !output.isKnown(name)) {
        if (held !== null || (yield* argumentsFollow(desk, call))) output.unknown(name);
        return "none";
      }
      if (call.name !== "key") continue;
    }
    if (atHand === null && (call.name === "key" || call.arguments.includes(key))) {
      if (name === null) {
        held = yield* readJson(cursor);
        if (held === null) return "none";
        continue;
      }
      atHand = new CallAtHand(desk, name, id);
      if (!(yield* readArguments(desk, atHand, code))) return yield* failCall(desk, atHand, { brackets });
      continue;
    }
    const other = yield* readJson(cursor);
    if (other === null) return yield* failed();
    if (key === call.id) id = textOf(other);
  }
  cursor.pos++;
  if (isNested) {
    output.closer(cursor.take());
    return "read";
  }
  if (name === null || (call.argumentsRequired === true && atHand === null && held === null)) return "none";
  if (atHand === null) {
    atHand = new CallAtHand(desk, name, id);
    atHand.json(held === null || held === "null" ? "{}" : innerObject(held));
  }
  atHand.end("succeeded");
  return "read";
}

/** The value of the arguments, which begins with this character. Gives whether it was complete and right. */
function* readArguments({ cursor }: CallDesk, atHand: CallAtHand, code: number): Reading<boolean> {
  if (code === 34) return yield* streamJsonText(cursor, atHand);
  if (code === 123) return yield* streamJson(cursor, atHand);
  const json = yield* readJson(cursor);
  if (json !== null) atHand.json(json === "null" ? "{}" : json);
  return json !== null;
}

function* fail(desk: CallDesk, atHand: CallAtHand | null): Reading<CallOutcome> {
  return atHand === null ? "none" : yield* failCall(desk, atHand, { inArguments: false });
}

/** What closes the object around the arguments, and the array around it. */
const brackets = /\}\s*\]?$/;

/** Whether the next member is the arguments. Nothing is held back for it but the key as far as it is theirs. */
function* argumentsFollow({ cursor, plan }: CallDesk, call: ObjectCall): Reading<boolean> {
  if ((yield* cursor.skipSpace()) !== 44) return false;
  cursor.pos++;
  yield* cursor.skipSpace();
  const keys = plan.set("keys", () => call.arguments.map((key) => JSON.stringify(key)), call.arguments);
  return (yield* matchMarker(cursor, keys)) >= 0;
}

function mayBegin(call: ObjectCall, key: string): boolean {
  return (
    call.name === "key" ||
    key === call.nested ||
    call.name.includes(key) ||
    call.arguments.includes(key) ||
    key === call.id ||
    key === "type"
  );
}

function textOf(json: string): string {
  const value: unknown = JSON.parse(json);
  return typeof value === "string" ? value : json;
}
