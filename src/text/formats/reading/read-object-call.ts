import type { ObjectCall } from "../format.ts";
import { type CallContext, type CallOutcome, CallWriter, failCall, skipFence } from "./call-output.ts";
import { notYet, type Parser } from "./cursor.ts";
import { matchMarker } from "./marker-set.ts";
import { readJsonValue, readJsonString, streamJson, streamJsonText, unwrapString } from "./read-json.ts";

/** What precedes the first `{`. */
interface Preceding {
  /** The `[` of an array. */
  readonly bracket: boolean;
  /** The first line of a code fence. */
  readonly fence: boolean;
  /** No opener. */
  readonly bare: boolean;
}

/** Reads calls that are JSON objects. The cursor is at the first `{`. "none": the first object is not a call. */
export function* readObjectCalls(context: CallContext, syntax: ObjectCall, preceding: Preceding): Parser<CallOutcome> {
  const { cursor, output } = context;
  const outcome = yield* readList(context, syntax, preceding);
  if (outcome === "read" && preceding.fence && (yield* cursor.skipSpace()) === 96) {
    yield* skipFence(context);
    output.closer(cursor.take());
  }
  return outcome;
}

function* readList(context: CallContext, syntax: ObjectCall, { bracket, bare }: Preceding): Parser<CallOutcome> {
  const { cursor, output } = context;
  for (let first = true; ; first = false) {
    const outcome = yield* readObject(context, syntax, bare);
    if (outcome !== "read") return first ? outcome : "read";
    if (syntax.list === "one") return "read";
    let code = yield* cursor.skipSpace();
    if (code === 44 || (!bracket && code === 59)) {
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

/** Matches what closes the object around the arguments, and the array around it. */
const brackets = /\}\s*\]?$/;

function* readObject(context: CallContext, syntax: ObjectCall, bare: boolean, outerId?: string): Parser<CallOutcome> {
  const { cursor, output } = context;
  let name: string | null = null;
  let id = outerId;
  let isNested = false;
  /** Arguments that precede the name. */
  let held: string | null = null;
  let call: CallWriter | null = null;
  const fail = function* (): Parser<CallOutcome> {
    return call === null ? "none" : yield* failCall(context, call, { inArguments: false });
  };
  if ((cursor.code() === notYet ? yield* cursor.peek() : cursor.code()) !== 123) return "none";
  cursor.pos++;
  for (let first = true; ; first = false) {
    let code = cursor.skipAvailableSpace();
    if (code === notYet) code = yield* cursor.skipSpace();
    if (code === 125) break;
    if (!first) {
      if (code !== 44) return yield* fail();
      cursor.pos++;
      if (cursor.skipAvailableSpace() === notYet) yield* cursor.skipSpace();
    }
    const key = yield* readJsonString(cursor);
    code = cursor.skipAvailableSpace();
    if (code === notYet) code = yield* cursor.skipSpace();
    if (key === null || code !== 58) return yield* fail();
    // Without an opener, an object that begins with another key is an answer in JSON, which must not be held back.
    if (bare && first && !mayBegin(syntax, key)) return "none";
    cursor.pos++;
    code = cursor.skipAvailableSpace();
    if (code === notYet) code = yield* cursor.skipSpace();
    if (key === syntax.nested && code === 123 && call === null) {
      const { nested: _, ...inner } = syntax;
      if ((yield* readObject(context, inner, bare, id)) === "none") return "none";
      isNested = true;
      continue;
    }
    if (name === null && (syntax.name === "key" || syntax.name.includes(key))) {
      name = syntax.name === "key" ? key : yield* readJsonString(cursor);
      if (name === null || name === "") return "none";
      if (bare && !output.isKnown(name)) {
        if (held !== null || (yield* argumentsFollow(context, syntax))) output.unknown(name);
        return "none";
      }
      if (syntax.name !== "key") continue;
    }
    if (call === null && (syntax.name === "key" || syntax.arguments.includes(key))) {
      if (name === null) {
        held = yield* readJsonValue(cursor);
        if (held === null) return "none";
        continue;
      }
      call = new CallWriter(context, { name, id });
      if (!(yield* readArguments(context, call, code))) return yield* failCall(context, call, { brackets });
      continue;
    }
    const other = yield* readJsonValue(cursor);
    if (other === null) return yield* fail();
    if (key === syntax.id) id = idOf(other);
  }
  cursor.pos++;
  if (isNested) {
    output.closer(cursor.take());
    return "read";
  }
  if (name === null || (syntax.argumentsRequired === true && call === null && held === null)) return "none";
  if (call === null) {
    call = new CallWriter(context, { name, id });
    call.json(held === null || held === "null" ? "{}" : unwrapString(held));
  }
  call.end("succeeded");
  return "read";
}

/** Reads the value of the arguments, which begins with `code`. Returns whether it was complete and valid. */
function* readArguments({ cursor }: CallContext, call: CallWriter, code: number): Parser<boolean> {
  if (code === 34) return yield* streamJsonText(cursor, call);
  if (code === 123) return yield* streamJson(cursor, call);
  const json = yield* readJsonValue(cursor);
  if (json !== null) call.json(json === "null" ? "{}" : json);
  return json !== null;
}

/** Whether the next member is the arguments. Waits only for the key, as far as it may be that of the arguments. */
function* argumentsFollow({ cursor, format }: CallContext, syntax: ObjectCall): Parser<boolean> {
  if ((yield* cursor.skipSpace()) !== 44) return false;
  cursor.pos++;
  yield* cursor.skipSpace();
  const keys = format.set("keys", () => syntax.arguments.map((key) => JSON.stringify(key)), syntax.arguments);
  return (yield* matchMarker(cursor, keys)) >= 0;
}

/** Whether the object of a call may begin with this key. */
function mayBegin(syntax: ObjectCall, key: string): boolean {
  return (
    syntax.name === "key" ||
    syntax.name.includes(key) ||
    syntax.arguments.includes(key) ||
    [syntax.nested, syntax.id, "type"].includes(key)
  );
}

function idOf(json: string): string {
  const value: unknown = JSON.parse(json);
  return typeof value === "string" ? value : json;
}
