import type { NamedCall, TaggedArgs } from "../format.ts";
import { awaited, Pile, type Reading } from "./cursor.ts";
import { CallAtHand, type CallDesk, type CallOutcome, failCall } from "./desk.ts";
import { MarkerSet, matchMarker, readToMarker } from "./marker-set.ts";
import type { Head } from "./read-named-call.ts";
import { streamJson } from "./read-json.ts";
import { type DeclaredTypes, itemOf, propertyOf, typedValue, typesOf } from "./tool-types.ts";
import { type ArgumentSink, escapeCharacters, JsonScan } from "./json-scan.ts";

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

/** Deeper is text. */
const deepest = 60;

/**
 * The JSON of a value in nested tags: `open`key`>`value…, closed by `open` + `/` key `>`. Where the schema allows a string, the markup is
 * the string. `item` names the members of an array.
 */
export function nestedValue(
  text: string,
  open: string,
  item: string,
  declared: DeclaredTypes | undefined,
  root: unknown,
  depth = 0,
): string {
  const trimmed = text.trim();
  if (!trimmed.startsWith(open) || declared?.types.has("string") === true || depth === deepest) {
    return typedValue(text, declared);
  }
  const members = split(trimmed, open);
  if (members === null) return typedValue(text, declared);
  const schema = declared?.schema;
  const types = declared?.types ?? new Set<string>();
  const isArray = members.every(([key]) => key === item) && (types.has("array") || !types.has("object"));
  const inner = (value: string, part: unknown): string => {
    const known =
      part === undefined ? undefined : { types: typesOf(part, root), schema: part as DeclaredTypes["schema"] };
    return nestedValue(value, open, item, known, root, depth + 1);
  };
  if (isArray) return `[${members.map(([, value], index) => inner(value, itemOf(schema, index, root))).join(",")}]`;
  return `{${members
    .map(([key, value]) => `${JSON.stringify(key)}:${inner(value, propertyOf(schema, key, root))}`)
    .join(",")}}`;
}

/** The tags side by side: key and content of each. null: it is not only tags. */
function split(text: string, open: string): [key: string, content: string][] | null {
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

/** Where the close is that belongs to an opener before `from`; −1: nowhere. */
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

/** "string": it is one; "value": anything but; "typed": the declared types and the text decide. */
export type ValueKind = "string" | "value" | "typed";

/**
 * Writes the value of one tagged parameter as JSON while it comes. A string streams; a value whose type is open is held back until it
 * can only be a string, or until it is complete.
 */
export class ValueWriter {
  readonly #sink: ArgumentSink;
  readonly #lead: string;
  readonly #declared: DeclaredTypes | undefined;
  /** One newline is taken off each end of a string. */
  readonly #newlines: boolean;
  /** What came while it may be something else than a string. */
  #held: Pile | null;
  /** Where no type is declared: follows the text as JSON. As soon as it is not JSON, it is a string. */
  #scan: JsonScan | null = null;
  #begun = false;
  /** A newline at the end so far, which is no part of a string if nothing follows. */
  #newline = "";

  /** `lead`: JSON that stands before the value. */
  constructor(
    sink: ArgumentSink,
    lead: string,
    kind: ValueKind,
    declared: DeclaredTypes | undefined,
    newlines: boolean,
  ) {
    this.#sink = sink;
    this.#lead = lead;
    this.#newlines = newlines;
    this.#declared = kind === "value" ? { types: new Set(), schema: true } : declared;
    const text = kind === "string" || (this.#declared?.types.size === 1 && this.#declared.types.has("string"));
    this.#held = text ? null : new Pile();
    if (!text && this.#declared === undefined) this.#scan = new JsonScan();
  }

  /** Nothing but white space has come. */
  get empty(): boolean {
    return !this.#begun && (this.#held === null || this.#held.toString().trim() === "");
  }

  /** A further piece of the value, as it was taken from the text. */
  push(raw: string): void {
    if (raw === "") return;
    if (this.#held === null) return this.#sink.write(this.#string(raw), raw);
    this.#held.add(raw);
    if (this.#scan === null || this.#mayBeValue(this.#scan, raw)) return this.#sink.write("", raw);
    const text = this.#held.take();
    this.#held = null;
    this.#sink.write(this.#string(text), raw);
  }

  #mayBeValue(scan: JsonScan, piece: string): boolean {
    let at = 0;
    if (scan.state !== "done") at = scan.scan(piece, 0);
    if (scan.state === "more") return !scan.isString;
    return scan.state === "done" && !scan.isString && piece.slice(at).trim() === "";
  }

  #string(piece: string): string {
    let text = this.#newline + piece;
    let json = "";
    if (!this.#begun) {
      this.#begun = true;
      json = `${this.#lead}"`;
      if (this.#newlines && text.startsWith("\n")) text = text.slice(1);
    }
    this.#newline = "";
    if (this.#newlines && text.endsWith("\n")) {
      this.#newline = "\n";
      text = text.slice(0, -1);
    }
    return json + escapeCharacters(text);
  }

  /** The value is complete. Gives the JSON that is still due. */
  end(): string {
    if (this.#held === null) return this.#begun ? '"' : `${this.#lead}""`;
    let text = this.#held.take();
    if (this.#newlines) text = text.replace(/^\n/, "").replace(/\n$/, "");
    return this.#lead + typedValue(text, this.#declared);
  }
}

export interface Key {
  readonly name: string;
  /** What the tag's attributes say of the value's type. */
  readonly kind: ValueKind;
}

const longestKey = 400;

/** Reads a parameter's key behind its opener, up to where the value begins. null: there is none. */
export function* readKey(desk: CallDesk, args: TaggedArgs): Reading<Key | null> {
  const { cursor, plan } = desk;
  const end = plan.set("key end", () => [args.keyEnd], args);
  let name = "";
  for (;;) {
    let code = cursor.now();
    if (code === awaited) code = yield* cursor.peek();
    if (code < 0 || name.length > longestKey) return null;
    if (end.child(0, code) >= 0 && (yield* matchMarker(cursor, end)) >= 0) break;
    if (code === 60 || code === 10) return null;
    name += cursor.text[cursor.pos];
    cursor.pos++;
  }
  name = name.trim();
  if (name === "") return null;
  let kind: ValueKind = "typed";
  if (args.tagEnd !== undefined) {
    const attributes = yield* readAttributes(desk, args, args.tagEnd);
    if (attributes === null) return null;
    const { hint } = args;
    if (hint && attributes.includes(`${hint.attribute}="`)) {
      kind = attributes.includes(`${hint.attribute}="${hint.string}"`) ? "string" : "value";
    }
  }
  return { name, kind };
}

/** The text of a tag up to its end, which is passed. null: it is no tag. */
function* readAttributes(desk: CallDesk, args: TaggedArgs, tagEnd: string): Reading<string | null> {
  const { cursor, plan } = desk;
  const end = plan.set("tag end", () => [tagEnd], args);
  let text = "";
  for (;;) {
    let code = cursor.now();
    if (code === awaited) code = yield* cursor.peek();
    if (code < 0 || code === 10 || text.length > longestKey) return null;
    if (end.child(0, code) >= 0 && (yield* matchMarker(cursor, end)) >= 0) return text;
    text += cursor.text[cursor.pos];
    cursor.pos++;
  }
}

/** Reads a parameter's value and its close, and writes it behind `lead`. Gives false if there is no value: nothing was written. */
export function* readParameter(
  desk: CallDesk,
  atHand: CallAtHand,
  args: TaggedArgs,
  closes: MarkerSet,
  key: Key,
  lead: string,
  declared: DeclaredTypes | undefined,
): Reading<boolean> {
  const { cursor, plan } = desk;
  let opened = true;
  if (args.valueOpen !== undefined) opened = yield* passValueOpen(desk, args, args.valueOpen);
  // What stands before the value is accounted for, so that all that is taken from here on is the value.
  atHand.json("");
  const close = args.close.replace("{key}", key.name);
  const markers = (): readonly string[] => {
    return [close, ...(args.nestedItem === undefined ? [args.open] : []), ...closes.markers];
  };
  const ends = close === args.close ? plan.set("value ends", markers, closes) : new MarkerSet(markers());
  if (args.nestedItem !== undefined) {
    const text = yield* gather(desk, atHand, ends);
    atHand.json(lead + nestedValue(text, args.open, args.nestedItem, declared, desk.types.root(atHand.name)));
    return true;
  }
  if (args.cdata === true) {
    const found = yield* matchMarker(
      cursor,
      plan.set("cdata", () => ["<![CDATA["]),
    );
    if (found >= 0) {
      atHand.json("");
      const writer = new ValueWriter(atHand, lead, key.kind, declared, false);
      yield* readToMarker(
        cursor,
        plan.set("cdata end", () => ["]]>"]),
        (kept) => writer.push(cursor.take(kept)),
      );
      atHand.json(writer.end());
      yield* cursor.skipSpace();
      yield* matchMarker(
        cursor,
        plan.set("after cdata", () => [close], args),
      );
      atHand.json("");
      return true;
    }
  }
  const writer = new ValueWriter(atHand, lead, key.kind, declared, args.trim === "newline");
  const found = yield* readToMarker(cursor, ends, (kept) => writer.push(cursor.take(kept)));
  if (found > 0) cursor.pos -= ends.markers[found]?.length ?? 0;
  if (!opened && writer.empty) {
    atHand.json("");
    return false;
  }
  if (found < 0 && cursor.cut) return true;
  atHand.json(writer.end());
  return true;
}

/** White space and what stands before a value; also the two characters `\n`, which GLM writes at times. */
function* passValueOpen(desk: CallDesk, args: TaggedArgs, open: string): Reading<boolean> {
  const { cursor, plan } = desk;
  const set = plan.set("value open", () => [open, "\\n"], args);
  for (;;) {
    yield* cursor.skipSpace();
    const found = yield* matchMarker(cursor, set);
    if (found <= 0) return found === 0;
  }
}

/** The text up to one of `ends`; the first of them is passed, the others are not. */
function* gather(desk: CallDesk, atHand: CallAtHand, ends: MarkerSet): Reading<string> {
  const { cursor } = desk;
  const pile = new Pile();
  const found = yield* readToMarker(cursor, ends, (kept) => {
    const raw = cursor.take(kept);
    pile.add(raw);
    atHand.write("", raw);
  });
  if (found > 0) cursor.pos -= ends.markers[found]?.length ?? 0;
  return pile.take();
}

/**
 * Reads the one parameter whose value may be the whole object of arguments (`{"arguments": {…}}` is meant as `{…}`). Gives whether it
 * was, and with it the call's close; else the parameter is written as any other.
 */
export function* readWrapped(
  desk: CallDesk,
  atHand: CallAtHand,
  args: TaggedArgs,
  closes: MarkerSet,
  key: Key,
): Reading<boolean> {
  const { cursor, plan } = desk;
  atHand.json("");
  const ends = plan.set("wrapped ends", () => [args.close, args.open, ...closes.markers], closes);
  const text = yield* gather(desk, atHand, ends);
  const json = key.kind === "string" ? JSON.stringify(text) : typedValue(text, undefined);
  const inner = key.kind === "string" ? typedValue(text, undefined) : json;
  yield* cursor.skipSpace();
  const found = yield* matchMarker(cursor, closes);
  const last = found >= 0 || (yield* cursor.peek()) < 0;
  if (inner.startsWith("{") && last) {
    atHand.json(inner);
    atHand.end("succeeded");
    return true;
  }
  if (found >= 0) cursor.pos -= closes.markers[found]?.length ?? 0;
  atHand.json(`{${JSON.stringify(key.name)}:${json}`);
  return false;
}
