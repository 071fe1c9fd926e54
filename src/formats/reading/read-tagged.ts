import type { NamedCall, TaggedArgs } from "../format.ts";
import { type CallContext, type CallHead, type CallOutcome, CallWriter, failCall } from "./call-output.ts";
import { notYet, type Parser, TextBuffer } from "./cursor.ts";
import { type ArgumentSink, escapeCharacters, JsonScan } from "./json-scan.ts";
import { MarkerSet, matchMarker, readBeforeMarker, readName, readToMarker } from "./marker-set.ts";
import { streamJson } from "./read-json.ts";
import { type DeclaredTypes, itemOf, propertyOf, typedValue, typesOf } from "./tool-types.ts";

/** What the parsers of one call's parameters share. */
interface TagContext extends CallContext {
  readonly args: TaggedArgs;
  readonly call: CallWriter;
  /** What ends the call. */
  readonly closes: MarkerSet;
}

/** A parameter's name, and what the attributes of its tag say of the value's type. */
interface Key {
  readonly name: string;
  readonly kind: ValueKind;
}

/** "string": a string; "value": anything but a string; "typed": the declared types and the text decide. */
type ValueKind = "string" | "value" | "typed";

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
  const context: TagContext = { ...shared, args, call, closes };
  const tags = format.set("tags", () => [args.open, ...closes.markers], closes);
  const strict = args.strict === true;
  const seen = new Set<string>();
  const finish = (): CallOutcome => {
    if (cursor.cut && cursor.ended) {
      call.end("failed");
      return "failed";
    }
    call.json(seen.size === 0 ? "{}" : "}");
    call.end("succeeded");
    return "read";
  };
  if (head.empty) return finish();
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
      if (code < 0) return finish();
      // Not a parameter: skipped up to the next parameter or the end of the call.
      const next = yield* readBeforeMarker(cursor, tags, (raw) => call.write("", raw));
      if (next < 0) return finish();
      continue;
    }
    if (found > 0) {
      // The close of a section belongs to the section.
      if (found > (syntax.close?.length ?? 0)) cursor.pos -= tags.length(found);
      return finish();
    }
    const key = yield* readKey(context);
    if (key === null) return call.started ? finish() : "none";
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

const maxKeyLength = 400;

/** Reads a parameter's key after the tag's opener, up to where the value begins. Returns null if there is none. */
function* readKey({ cursor, format, args }: TagContext): Parser<Key | null> {
  const keyEnd = format.set("key end", () => [args.keyEnd], args);
  const read = yield* readName(cursor, keyEnd, maxKeyLength, (code) => code === 60 || code === 10);
  const name = read?.text.trim() ?? "";
  if (name === "") return null;
  const { hint, tagEnd } = args;
  if (tagEnd === undefined) return { name, kind: "typed" };
  const end = format.set("tag end", () => [tagEnd], args);
  const attributes = yield* readName(cursor, end, maxKeyLength, (code) => code === 10);
  if (attributes === null) return null;
  if (!hint || !attributes.text.includes(`${hint.attribute}="`)) return { name, kind: "typed" };
  return { name, kind: attributes.text.includes(`${hint.attribute}="${hint.string}"`) ? "string" : "value" };
}

/** Reads a parameter's value and its close, and writes it after `lead`. Returns false, with nothing written, if there is no value. */
function* readParameter(
  context: TagContext,
  key: Key,
  lead: string,
  declared: DeclaredTypes | undefined,
): Parser<boolean> {
  const { cursor, format, types, args, call, closes } = context;
  const opened = args.valueOpen === undefined || (yield* readValueOpen(context, args.valueOpen));
  // Consumes what precedes the value, so that everything consumed from here on is the value.
  call.json("");
  const close = args.close.replace("{key}", key.name);
  const markers = (): readonly string[] => {
    return [close, ...(args.nestedItem === undefined ? [args.open] : []), ...closes.markers];
  };
  const ends = close === args.close ? format.set("value ends", markers, closes) : new MarkerSet(markers());
  if (args.nestedItem !== undefined) {
    const text = yield* readValueText(context, ends);
    call.json(lead + nestedValue(text, args.open, args.nestedItem, declared, types.root(call.name)));
    return true;
  }
  const cdata = format.set("cdata", () => ["<![CDATA["]);
  if (args.cdata === true && (yield* matchMarker(cursor, cdata)) >= 0) {
    call.json("");
    const writer = new ValueWriter(call, lead, key.kind, declared, false);
    const cdataEnd = format.set("cdata end", () => ["]]>"]);
    yield* readToMarker(cursor, cdataEnd, (raw) => writer.push(raw));
    call.json(writer.end());
    yield* cursor.skipSpace();
    const afterCdata = format.set("after cdata", () => [close], args);
    yield* matchMarker(cursor, afterCdata);
    call.json("");
    return true;
  }
  const writer = new ValueWriter(call, lead, key.kind, declared, args.trim === "newline");
  const found = yield* readToMarker(cursor, ends, (raw) => writer.push(raw));
  if (found > 0) cursor.pos -= ends.length(found);
  if (!opened && writer.empty) {
    call.json("");
    return false;
  }
  if (found < 0 && cursor.cut) return true;
  call.json(writer.end());
  return true;
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

/** Reads the text of a value up to one of `ends`. Only the first of them is passed. */
function* readValueText({ cursor, call }: TagContext, ends: MarkerSet): Parser<string> {
  const buffer = new TextBuffer();
  const found = yield* readToMarker(cursor, ends, (raw) => {
    buffer.add(raw);
    call.write("", raw);
  });
  if (found > 0) cursor.pos -= ends.length(found);
  return buffer.take();
}

/**
 * Reads a single parameter whose value may be the whole object of arguments (`{"arguments": {…}}` in place of `{…}`). Returns whether it
 * was, with the close of the call read; otherwise the parameter is written like any other.
 */
function* readWrapped(context: TagContext, key: Key): Parser<boolean> {
  const { cursor, format, args, call, closes } = context;
  call.json("");
  const ends = format.set("wrapped ends", () => [args.close, args.open, ...closes.markers], closes);
  const text = yield* readValueText(context, ends);
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
    this.#declared = kind === "value" ? { types: new Set(), schema: true } : declared;
    const isString = kind === "string" || (this.#declared?.types.size === 1 && this.#declared.types.has("string"));
    this.#held = isString ? null : new TextBuffer();
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
