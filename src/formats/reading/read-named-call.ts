import type { NamedCall } from "../format.ts";
import { awaited, Pile, type Reading } from "./cursor.ts";
import { CallAtHand, type CallDesk, type CallOutcome, failCall, passFence, recordCall } from "./desk.ts";
import { matchMarker, readToMarker } from "./marker-set.ts";
import { streamJson } from "./read-json.ts";
import { readLoose } from "./read-loose.ts";
import { readTagged } from "./read-tagged.ts";
import { python, readLiteral } from "./read-literal.ts";

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

export interface Head {
  readonly name: string;
  readonly id?: string;
  /** The marker that ended it. */
  readonly end: string;
  /** A tag that is closed in itself: the call has no arguments. */
  readonly empty: boolean;
}

/** Longer is no name. Bounds what is held back for one. */
const longestHead = 400;
/** Characters that end the hope for a name, unless a marker begins with them. */
const notInNames = new Set([..."\n<>{}"].map((character) => character.charCodeAt(0)));

/** Reads a call's head, up to and with what ends it. null: it is no head; the cursor then stands where that became clear. */
export function* readHead(desk: CallDesk, call: NamedCall): Reading<Head | null> {
  const { cursor, plan } = desk;
  const kept = call.headEndKept ?? [];
  const ends = plan.set("head end", () => call.headEnd, call);
  let text = "";
  let marker = "";
  for (;;) {
    let code = cursor.now();
    if (code === awaited) code = yield* cursor.peek();
    if (code < 0) return null;
    if (ends.child(0, code) >= 0) {
      const end = yield* matchMarker(cursor, ends);
      if (end >= 0) {
        marker = ends.markers[end] ?? "";
        if (kept.includes(marker)) cursor.pos -= marker.length;
        break;
      }
    }
    if ((notInNames.has(code) && !headLiteral(call.head, code)) || text.length > longestHead) return null;
    text += cursor.text[cursor.pos];
    cursor.pos++;
  }
  const found = headPattern(call.head).exec(text.trim());
  const name = found?.groups?.["name"]?.trim() ?? "";
  const id = call.headIsId === true ? text.trim() : found?.groups?.["id"]?.trim();
  let empty = false;
  if (call.tagEnd !== undefined) {
    const { tagEnd } = call;
    let attributes = "";
    const found = yield* readToMarker(
      cursor,
      plan.set("tag end", () => [tagEnd, "\n"], call),
      () => {},
    );
    if (found !== 0) return null;
    attributes = cursor.text.slice(0, cursor.pos - tagEnd.length);
    empty = attributes.endsWith("/");
  }
  return { name, empty, end: marker, ...(id !== undefined && id !== "" && { id }) };
}

const patterns = new Map<string, RegExp>();

/** `functions.{name}:{index}` → a pattern in which what stands before and behind the name may miss. */
function headPattern(head: string): RegExp {
  let pattern = patterns.get(head);
  if (!pattern) {
    const [before = "", behind = ""] = head.split("{name}");
    const part = (text: string): string =>
      text === ""
        ? ""
        : `(?:${escapePattern(text).replace("\\{index\\}", "\\d+").replace("\\{id\\}", "(?<id>[^]*?)")})?`;
    pattern = new RegExp(`^${part(before)}(?<name>[^]+?)${part(behind)}$`);
    patterns.set(head, pattern);
  }
  return pattern;
}

function headLiteral(head: string, code: number): boolean {
  return head.replace(/\{\w+\}/g, "").includes(String.fromCharCode(code));
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

const nameForm = /^[\p{L}_][\p{L}\p{N}_.-]*$/u;
const nameStart = /[\p{L}_]/u;

/** Reads `f(a=1), g(b="x")` with or without brackets, the `[` passed if there is one; or a call a line. */
export function* readPythonCalls(desk: CallDesk, call: NamedCall, bracket: boolean): Reading<CallOutcome> {
  const { cursor, output } = desk;
  for (let first = true; ; first = false) {
    const outcome = yield* readPythonCall(desk, call);
    if (outcome !== "read") return first ? outcome : "read";
    let code = yield* cursor.skipSpace();
    if (code === 44) {
      cursor.pos++;
      code = yield* cursor.skipSpace();
    }
    if (bracket && code === 93) {
      cursor.pos++;
      output.closer(cursor.take());
      return "read";
    }
    if (code < 0 || !nameStart.test(String.fromCharCode(code))) return "read";
  }
}

function* readPythonCall(desk: CallDesk, call: NamedCall): Reading<CallOutcome> {
  const { cursor } = desk;
  const head = yield* readHead(desk, call);
  if (head === null || !nameForm.test(head.name)) return "none";
  const atHand = new CallAtHand(desk, head.name, head.id);
  for (let first = true; ; first = false) {
    let code = yield* cursor.skipSpace();
    if (!first && code === 44) {
      cursor.pos++;
      code = yield* cursor.skipSpace();
    } else if (!first && code !== 41) return yield* failCall(desk, atHand);
    if (code === 41) {
      cursor.pos++;
      atHand.json(first ? "{}" : "}");
      atHand.end("succeeded");
      return "read";
    }
    const key = yield* readKeyword(desk);
    if (key === null) return yield* failCall(desk, atHand);
    // The first character of the value decides that this is a call: it is announced with what comes of the value.
    if ((yield* cursor.skipSpace()) < 0) return yield* failCall(desk, atHand);
    const lead = `${first ? "{" : ","}${JSON.stringify(key)}:`;
    let led = false;
    const sink = {
      write: (json: string, raw: string) => atHand.write(json, raw),
      characters: (kept: number) => atHand.characters(kept),
      json: (text: string) => {
        atHand.json(led ? text : lead + text);
        led = true;
      },
    };
    if (!(yield* readLiteral(cursor, python, sink))) return yield* failCall(desk, atHand);
  }
}

/** `key=`; null: it is not a keyword. */
function* readKeyword(desk: CallDesk): Reading<string | null> {
  const { cursor } = desk;
  let key = "";
  for (;;) {
    const code = yield* cursor.peek();
    if (code < 0 || key.length > 200) return null;
    cursor.pos++;
    if (code === 61) break;
    key += String.fromCharCode(code);
    if (!/^[\p{L}_][\p{L}\p{N}_-]*\s*$/u.test(key)) return null;
  }
  return key.trim();
}
