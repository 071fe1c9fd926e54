import type { NamedCall, TaggedArgs } from "../format.ts";
import { type CallContext, type CallHead, type CallOutcome, CallWriter, failCall } from "./call-output.ts";
import { notYet, type Parser, TextBuffer } from "./cursor.ts";
import { type ArgumentSink, escapeCharacters, JsonScan } from "./json-scan.ts";
import { MarkerSet, matchMarker, readBeforeMarker, readToMarker } from "./marker-set.ts";
import { streamJson } from "./read-json.ts";
import { type Key, readKey, readValueText, type TagContext, type ValueKind } from "./read-tagged-value.ts";
import { type DeclaredTypes, itemOf, propertyOf, typedValue, typesOf } from "./tool-types.ts";

/** Reads the parameters of a call, one tag each, after its head, and the close of the call. */
export function* readTagged(
  shared: CallContext,
  syntax: NamedCall,
  args: TaggedArgs,
  head: CallHead,
): Parser<CallOutcome> {
  const { cursor, format, types } = shared;
  const call = new CallWriter(shared, head);
  const closes = format.closes(syntax);
  const seen = new Set<string>();
  const context: TagContext = { ...shared, syntax, args, call, closes, seen };
  const tags = format.set("tags", () => [args.open, ...closes.markers], closes);
  const strict = args.strict === true;
  let malformed = false;
  /** `closed`: a marker ends the call. Otherwise the text has ended. */
  const finish = (closed: boolean): CallOutcome => {
    const isCut = cursor.cut && !closed;
    if (!isCut) call.json(seen.size === 0 ? "{}" : "}");
    call.end(isCut || malformed ? "failed" : "succeeded");
    return isCut ? "failed" : "read";
  };
  if (head.empty) return finish(true);
  for (let first = true; ; first = false) {
    let code = cursor.skipAvailableSpace();
    if (code === notYet) code = yield* cursor.skipSpace();
    if (first && args.jsonBody === true && code === 123) {
      if (!(yield* streamJson(cursor, call))) return yield* failCall(context, call);
      yield* cursor.skipSpace();
      yield* matchMarker(cursor, format.callCloses(syntax));
      call.end("succeeded");
      return "read";
    }
    const found = yield* matchMarker(cursor, tags);
    if (found < 0) {
      if (code < 0 && first && head.end.trim() !== "" && !strict) {
        // The name is complete and nothing follows: a call that was cut off.
        call.end("failed");
        return "failed";
      }
      if (first || strict) return "none";
      if (code < 0) return finish(false);
      // Not a parameter: skipped up to the next parameter or the end of the call.
      const next = yield* readBeforeMarker(cursor, tags, (raw) => call.write("", raw));
      if (next < 0) return finish(false);
      continue;
    }
    if (found > 0) {
      // The close of a section belongs to the section.
      if (found > (syntax.close?.length ?? 0)) cursor.pos -= tags.length(found);
      return finish(true);
    }
    const key = yield* readKey(context);
    if (key === null) {
      if (strict || (!call.started && (yield* cursor.peek()) < 0)) return "none";
      // A parameter without a name is not an argument. The call has failed, but what follows is read.
      malformed = true;
      yield* readValueText(context, "", args.close, (raw) => call.write("", raw));
      continue;
    }
    const declared = types.parameter(head.name, key.name);
    if (strict && (seen.has(key.name) || (declared === undefined && types.declares(head.name)))) return "none";
    if (seen.size === 0 && args.unwrap?.includes(key.name) && declared === undefined) {
      if (yield* readWrapped(context, key)) return "read";
      seen.add(key.name);
      continue;
    }
    const lead = `${seen.size === 0 ? "{" : ","}${JSON.stringify(key.name)}:`;
    if (yield* readParameter(context, key, lead, declared)) seen.add(key.name);
  }
}

/** Reads a parameter's value and its close, and writes it after `lead`. Returns false, with nothing written, if there is no value. */
function* readParameter(
  context: TagContext,
  key: Key,
  lead: string,
  declared: DeclaredTypes | undefined,
): Parser<boolean> {
  const { cursor, format, types, args, call } = context;
  const opened = args.valueOpen === undefined || (yield* readValueOpen(context, args.valueOpen));
  // Consumes what precedes the value, so that everything consumed from here on is the value.
  call.json("");
  const close = args.close.replace("{key}", key.name);
  if (!opened && (yield* hasNoValue(context, close))) return false;
  if (args.nestedItem !== undefined) {
    const text = yield* readWholeValue(context, key.name, close);
    call.json(lead + nestedValue(text, args.open, args.nestedItem, declared, types.root(call.name)));
    yield* skipCloses(context, close);
    return true;
  }
  const cdata = format.set("cdata", () => ["<![CDATA["]);
  if (args.cdata === true && (yield* matchMarker(cursor, cdata)) >= 0) {
    call.json("");
    const writer = new ValueWriter(call, lead, key.kind, declared, false);
    yield* readCdata(context, close, (raw) => writer.push(raw));
    call.json(writer.end());
    return true;
  }
  const writer = new ValueWriter(call, lead, key.kind, declared, args.trim === "newline");
  const end = yield* readValueText(context, key.name, close, (raw) => writer.push(raw));
  if (!opened && writer.empty) {
    call.json("");
    return false;
  }
  if (end === "text" && cursor.cut) return true;
  call.json(writer.end());
  if (end === "closed") yield* skipCloses(context, close);
  return true;
}

/** Skips further closes of a value that a model wrote twice. */
function* skipCloses({ cursor }: TagContext, close: string): Parser<void> {
  const set = new MarkerSet([close]);
  do yield* cursor.skipSpace();
  while ((yield* matchMarker(cursor, set)) >= 0);
}

/** Reads the text of a CDATA section up to the `]]>` that the close of the value or of the call, or the end of the text, follows. */
function* readCdata({ cursor, format, closes }: TagContext, close: string, push: (raw: string) => void): Parser<void> {
  const end = format.set("cdata end", () => ["]]>"]);
  const followers = format.set("after cdata", () => [close, ...closes.markers], closes);
  while ((yield* readToMarker(cursor, end, push)) >= 0) {
    yield* cursor.skipSpace();
    const found = yield* matchMarker(cursor, followers);
    if (found > 0) cursor.pos -= followers.length(found);
    if (found >= 0 || (yield* cursor.peek()) < 0) return;
    push(cursor.take());
  }
}

/** Reads white space and the opener of a value; also the two characters `\n`, which GLM sometimes writes. */
function* readValueOpen({ cursor, format, args }: TagContext, open: string): Parser<boolean> {
  const set = format.set("value open", () => [open, "\\n"], args);
  for (;;) {
    yield* cursor.skipSpace();
    const found = yield* matchMarker(cursor, set);
    if (found <= 0) return found === 0;
  }
}

/** Whether a value that was not opened is missing: its close, another parameter or the end of the call is next. */
function* hasNoValue({ cursor, args, closes }: TagContext, close: string): Parser<boolean> {
  yield* cursor.skipSpace();
  const next = new MarkerSet([args.open, ...closes.markers, close]);
  const found = yield* matchMarker(cursor, next);
  if (found >= 0 && next.markers[found] !== close) cursor.pos -= next.length(found);
  return found >= 0;
}

/** Reads the text of a value, and its close. */
function* readWholeValue(context: TagContext, name: string, close: string): Parser<string> {
  const buffer = new TextBuffer();
  yield* readValueText(context, name, close, (raw) => {
    buffer.add(raw);
    context.call.write("", raw);
  });
  return buffer.take();
}

/**
 * Reads a single parameter whose value may be the whole object of arguments (`{"arguments": {…}}` in place of `{…}`). Returns whether it
 * was, with the close of the call read; otherwise the parameter is written like any other.
 */
function* readWrapped(context: TagContext, key: Key): Parser<boolean> {
  const { cursor, args, call, closes } = context;
  call.json("");
  const text = yield* readWholeValue(context, key.name, args.close);
  const inner = typedValue(text, undefined);
  yield* cursor.skipSpace();
  const found = yield* matchMarker(cursor, closes);
  const last = found >= 0 || (yield* cursor.peek()) < 0;
  if (inner.startsWith("{") && last) {
    call.json(inner);
    call.end("succeeded");
    return true;
  }
  cursor.pos -= closes.length(found);
  call.json(`{${JSON.stringify(key.name)}:${key.kind === "string" ? JSON.stringify(text) : inner}`);
  return false;
}

/**
 * Writes the value of one parameter as JSON as it arrives. A string is streamed; a value of unknown type is held back until it can only be
 * a string, or until it is complete.
 */
class ValueWriter {
  readonly #sink: ArgumentSink;
  readonly #lead: string;
  readonly #declared: DeclaredTypes | undefined;
  readonly #trimNewlines: boolean;
  /** The text so far, while it may be something other than a string. */
  #held: TextBuffer | null;
  /** Checks whether the text is JSON, if no type is declared. */
  #scan: JsonScan | null = null;
  #started = false;
  /** A newline at the end of the text so far, which is dropped if nothing follows. */
  #newline = "";

  /** `lead`: JSON that precedes the value. `trimNewlines`: one newline is removed from each end of a string. */
  constructor(
    sink: ArgumentSink,
    lead: string,
    kind: ValueKind,
    declared: DeclaredTypes | undefined,
    trimNewlines: boolean,
  ) {
    this.#sink = sink;
    this.#lead = lead;
    this.#trimNewlines = trimNewlines;
    if (kind === "typed") this.#declared = declared;
    else if (kind === "value") this.#declared = { types: new Set(), schema: true };
    else this.#declared = declared && { ...declared, types: new Set(["string"]) };
    const isString = kind === "string" || (this.#declared?.types.size === 1 && this.#declared.types.has("string"));
    // A value that must be a listed one is compared with them when it is complete.
    this.#held = isString && this.#declared?.listed === undefined ? null : new TextBuffer();
    if (!isString && this.#declared === undefined) this.#scan = new JsonScan();
  }

  /** Only white space has come. */
  get empty(): boolean {
    return !this.#started && (this.#held === null || this.#held.toString().trim() === "");
  }

  /** Writes the next part of the value, which was consumed from the cursor. */
  push(raw: string): void {
    if (raw === "") return;
    if (this.#held === null) return this.#sink.write(this.#string(raw), raw);
    this.#held.add(raw);
    if (this.#scan === null || this.#mayBeValue(this.#scan, raw)) return this.#sink.write("", raw);
    const text = this.#held.take();
    this.#held = null;
    this.#sink.write(this.#string(text), raw);
  }

  #mayBeValue(scan: JsonScan, text: string): boolean {
    let at = 0;
    if (scan.state !== "done") at = scan.scan(text, 0);
    if (scan.state === "more") return !scan.isString;
    return scan.state === "done" && !scan.isString && text.slice(at).trim() === "";
  }

  #string(raw: string): string {
    let text = this.#newline + raw;
    let json = "";
    if (!this.#started) {
      this.#started = true;
      json = `${this.#lead}"`;
      if (this.#trimNewlines && text.startsWith("\n")) text = text.slice(1);
    }
    this.#newline = "";
    if (this.#trimNewlines && text.endsWith("\n")) {
      this.#newline = "\n";
      text = text.slice(0, -1);
    }
    return json + escapeCharacters(text);
  }

  /** The value is complete. Returns the JSON that is still missing. */
  end(): string {
    if (this.#held === null) return this.#started ? '"' : `${this.#lead}""`;
    let text = this.#held.take();
    if (this.#trimNewlines) text = text.replace(/^\n/, "").replace(/\n$/, "");
    return this.#lead + typedValue(text, this.#declared);
  }
}

/** Values nested deeper than this are strings. */
const maxDepth = 60;

/**
 * The JSON of a value in nested tags: `open`key`>`value…, closed by `open` + `/` key `>`. Where the schema allows a string, the markup is
 * the string. `item` is the tag of an array's items.
 */
function nestedValue(
  text: string,
  open: string,
  item: string,
  declared: DeclaredTypes | undefined,
  root: unknown,
  depth = 0,
): string {
  const trimmed = text.trim();
  const types = declared?.types ?? new Set<string>();
  const mayBeTags = trimmed.startsWith(open) && !types.has("string") && depth < maxDepth;
  const members = mayBeTags ? splitTags(trimmed, open) : null;
  if (members === null) return typedValue(text, declared);
  const schema = declared?.schema;
  const inner = (value: string, part: unknown): string => {
    const known =
      part === undefined ? undefined : { types: typesOf(part, root), schema: part as DeclaredTypes["schema"] };
    return nestedValue(value, open, item, known, root, depth + 1);
  };
  const isArray = members.every(([key]) => key === item) && (types.has("array") || !types.has("object"));
  if (isArray) return `[${members.map(([, value], index) => inner(value, itemOf(schema, index, root))).join(",")}]`;
  return `{${members
    .map(([key, value]) => `${JSON.stringify(key)}:${inner(value, propertyOf(schema, key, root))}`)
    .join(",")}}`;
}

/** The key and the content of each of the tags side by side, or null if the text is not only tags. */
function splitTags(text: string, open: string): [key: string, content: string][] | null {
  const members: [string, string][] = [];
  let at = 0;
  while (at < text.length) {
    if (!text.startsWith(open, at)) return null;
    const keyEnd = text.indexOf(">", at + open.length);
    if (keyEnd < 0) return null;
    const key = text.slice(at + open.length, keyEnd);
    const close = findClose(text, keyEnd + 1, `${open}${key}>`, `${open}/${key}>`);
    if (close < 0) return null;
    members.push([key, text.slice(keyEnd + 1, close)]);
    at = close + open.length + key.length + 2;
    while (at < text.length && text[at]?.trim() === "") at++;
  }
  return members;
}

/** The position of the close that matches an opener before `from`, or −1. */
function findClose(text: string, from: number, open: string, close: string): number {
  let depth = 1;
  for (let at = from; ;) {
    const nextClose = text.indexOf(close, at);
    if (nextClose < 0) return -1;
    const nextOpen = text.indexOf(open, at);
    if (nextOpen >= 0 && nextOpen < nextClose) {
      depth++;
      at = nextOpen + open.length;
    } else {
      depth--;
      if (depth === 0) return nextClose;
      at = nextClose + close.length;
    }
  }
}
