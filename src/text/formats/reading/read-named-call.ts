import type { NamedCall } from "../format.ts";
import {
  type CallContext,
  type CallHead,
  type CallOutcome,
  CallWriter,
  failCall,
  recordCall,
  skipFence,
} from "./call-output.ts";
import { type Parser, TextBuffer } from "./cursor.ts";
import { matchMarker, readBeforeMarker, readName, readToMarker } from "./marker-set.ts";
import { streamJson } from "./read-json.ts";
import { python, readLiteral } from "./read-literal.ts";
import { readLoose } from "./read-loose.ts";
import { readTagged } from "./read-tagged.ts";

/** Reads one or several calls after their opener. `bracket`: a `[` followed the opener. */
export function* readNamedCall(context: CallContext, syntax: NamedCall, bracket: boolean): Parser<CallOutcome> {
  const { args } = syntax;
  if (args.kind === "kwargs") return yield* readPythonCalls(context, syntax, bracket);
  if (bracket) return "none";
  const head = yield* readHead(context, syntax);
  if (head === null) return "none";
  if (head.name === "") return (yield* skipEmptyCall(context, syntax)) ? "read" : "none";
  switch (args.kind) {
    case "json":
      return yield* readJsonArguments(context, syntax, head);
    case "loose":
      return yield* readLoose(context, syntax, args.quotes, head);
    case "tagged":
      if (args.strict !== true) return yield* readTagged(context, syntax, args, head);
      return yield* recordCall(context, (recording) => readTagged(recording, syntax, args, head));
  }
}

/** Maximum length of a call's head: bounds what is held back. */
const maxHeadLength = 400;
/** Characters that cannot be part of a head, unless its pattern contains them. */
const notInNames = new Set([..."\n<>{}"].map((character) => character.charCodeAt(0)));

/** Reads the head of a call and the marker that ends it. Returns null, with the cursor at the offending character, if it is not a head. */
function* readHead({ cursor, format }: CallContext, syntax: NamedCall): Parser<CallHead | null> {
  const ends = format.set("head end", () => syntax.headEnd, syntax);
  const read = yield* readName(
    cursor,
    ends,
    maxHeadLength,
    (code) => notInNames.has(code) && !isInHead(syntax.head, code),
  );
  if (read === null) return null;
  const end = ends.markers[read.end] ?? "";
  if (syntax.headEndKept?.includes(end) === true) cursor.pos -= end.length;
  const text = read.text.trim();
  const found = headPattern(syntax.head).exec(text);
  const name = found?.groups?.["name"]?.trim() ?? "";
  const id = syntax.headIsId === true ? text : found?.groups?.["id"]?.trim();
  let empty = false;
  if (syntax.tagEnd !== undefined) {
    const { tagEnd } = syntax;
    if (
      (yield* readToMarker(
        cursor,
        format.set("tag end", () => [tagEnd, "\n"], syntax),
      )) !== 0
    )
      return null;
    empty = cursor.text.slice(0, cursor.pos - tagEnd.length).endsWith("/");
  }
  return { name, empty, end, ...(id !== undefined && id !== "" && { id }) };
}

function isInHead(head: string, code: number): boolean {
  return head.replace(/\{\w+\}/g, "").includes(String.fromCharCode(code));
}

const patterns = new Map<string, RegExp>();

/** The pattern of a head such as `functions.{name}:{index}`; the text before and after the name is optional. */
function headPattern(head: string): RegExp {
  let pattern = patterns.get(head);
  if (!pattern) {
    const [before = "", after = ""] = head.split("{name}");
    const part = (text: string): string => {
      if (text === "") return "";
      const escaped = text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
      return `(?:${escaped.replace("\\{index\\}", "\\d+").replace("\\{id\\}", "(?<id>[^]*?)")})?`;
    };
    pattern = new RegExp(`^${part(before)}(?<name>[^]+?)${part(after)}$`);
    patterns.set(head, pattern);
  }
  return pattern;
}

/** Skips a call without a name and without contents, which is hidden. Returns false for any other text. */
function* skipEmptyCall({ cursor, output, format }: CallContext, syntax: NamedCall): Parser<boolean> {
  yield* cursor.skipSpace();
  if (syntax.headEndKept || (yield* matchMarker(cursor, format.callCloses(syntax))) < 0) return false;
  output.closer(cursor.take());
  return true;
}

/** Reads arguments in JSON, perhaps in a code fence. No arguments at all are an empty object. */
function* readJsonArguments(context: CallContext, syntax: NamedCall, head: CallHead): Parser<CallOutcome> {
  const { cursor, format } = context;
  const call = new CallWriter(context, head);
  if (format.description.invalid === "raw") return yield* readRawArguments(context, syntax, call);
  let code = yield* cursor.skipSpace();
  if (syntax.fence === true && code === 96) {
    yield* skipFence(context);
    code = yield* cursor.skipSpace();
  }
  if (code === 123) {
    if (!(yield* streamJson(cursor, call))) return yield* failCall(context, call);
    if (syntax.fence === true && (yield* cursor.skipSpace()) === 96) yield* skipFence(context);
  } else {
    const closes = format.closes(syntax);
    const found = yield* matchMarker(cursor, closes);
    if (found < 0) return "none";
    cursor.pos -= closes.length(found);
    call.json("{}");
  }
  call.end("succeeded");
  return "read";
}

/** Reads everything up to the close as the arguments, whether it is JSON or not. */
function* readRawArguments({ cursor, format }: CallContext, syntax: NamedCall, call: CallWriter): Parser<CallOutcome> {
  yield* cursor.skipSpace();
  call.start();
  const space = new TextBuffer();
  yield* readBeforeMarker(cursor, format.closes(syntax), (raw) => {
    const text = raw.trimEnd();
    call.write(text === "" ? "" : space.take() + text, raw);
    space.add(raw.slice(text.length));
  });
  call.end("succeeded");
  return "read";
}

const pythonName = /^[\p{L}_][\p{L}\p{N}_.-]*$/u;
const pythonNameStart = /[\p{L}_]/u;

/** Reads `f(a=1), g(b="x")`, the `[` before it already passed, or one call per line. */
function* readPythonCalls(context: CallContext, syntax: NamedCall, bracket: boolean): Parser<CallOutcome> {
  const { cursor, output } = context;
  for (let first = true; ; first = false) {
    const outcome = yield* readPythonCall(context, syntax);
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
    if (code < 0 || !pythonNameStart.test(String.fromCharCode(code))) return "read";
  }
}

function* readPythonCall(context: CallContext, syntax: NamedCall): Parser<CallOutcome> {
  const { cursor } = context;
  const head = yield* readHead(context, syntax);
  if (head === null || !pythonName.test(head.name)) return "none";
  const call = new CallWriter(context, head);
  for (let first = true; ; first = false) {
    let code = yield* cursor.skipSpace();
    if (!first && code === 44) {
      cursor.pos++;
      code = yield* cursor.skipSpace();
    } else if (!first && code !== 41) return yield* failCall(context, call);
    if (code === 41) {
      cursor.pos++;
      call.json(first ? "{}" : "}");
      call.end("succeeded");
      return "read";
    }
    const key = yield* readKeyword(context);
    if (key === null) return yield* failCall(context, call);
    // The first character of the value shows that this is a call: the key is written together with the beginning of the value.
    if ((yield* cursor.skipSpace()) < 0) return yield* failCall(context, call);
    let lead = `${first ? "{" : ","}${JSON.stringify(key)}:`;
    const value = {
      write: (json: string, raw: string) => call.write(json, raw),
      json: (text: string) => {
        call.json(lead + text);
        lead = "";
      },
    };
    if (!(yield* readLiteral(cursor, python, value))) return yield* failCall(context, call);
  }
}

/** Reads `key=`. Returns null if it is not a keyword argument. */
function* readKeyword({ cursor }: CallContext): Parser<string | null> {
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
