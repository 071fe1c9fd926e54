import type { NamedCall, PlainFormat, TaggedArgs } from "../format.ts";
import type { CallContext, CallWriter } from "./call-output.ts";
import { type Cursor, notYet, type Parser } from "./cursor.ts";
import { MarkerSet, matchMarker, readName, readToMarker } from "./marker-set.ts";

/** What the parsers of one call's parameters share. */
export interface TagContext extends CallContext {
  readonly syntax: NamedCall;
  readonly args: TaggedArgs;
  readonly call: CallWriter;
  /** What ends the call: its own close markers, then those of the section. */
  readonly closes: MarkerSet;
  /** The names of the parameters that were read. */
  readonly seen: Set<string>;
}

/** A parameter's name, and what the attributes of its tag say of the value's type. */
export interface Key {
  readonly name: string;
  readonly kind: ValueKind;
}

/** "string": a string; "value": anything but a string; "typed": the declared types and the text decide. */
export type ValueKind = "string" | "value" | "typed";

const maxKeyLength = 400;
const maxHeadLength = 400;
const newline = 10;
const angle = 60;
const brace = 123;

/** Reads a parameter's key after the tag's opener, up to where the value begins. Returns null if it is missing. */
export function* readKey({ cursor, format, args }: Pick<TagContext, "cursor" | "format" | "args">): Parser<Key | null> {
  const keyEnd = format.set("key end", () => [args.keyEnd], args);
  const read = yield* readName(cursor, keyEnd, maxKeyLength, (code) => code === angle || code === newline);
  const name = read?.text.trim() ?? "";
  if (name === "") return null;
  const { hint, tagEnd } = args;
  if (tagEnd === undefined) return { name, kind: "typed" };
  const end = format.set("tag end", () => [tagEnd], args);
  const attributes = yield* readName(cursor, end, maxKeyLength, (code) => code === angle || code === newline);
  if (attributes === null) return null;
  if (!hint || !attributes.text.includes(`${hint.attribute}="`)) return { name, kind: "typed" };
  return { name, kind: attributes.text.includes(`${hint.attribute}="${hint.string}"`) ? "string" : "value" };
}

/**
 * What opens a parameter after the text of a value, without a close between them. Only at the beginning of a line, unless the format's tags
 * have more than a name; then also directly after the last word of the value.
 */
export function openersInValue(args: TaggedArgs): readonly string[] {
  if (args.nestedItem !== undefined) return [];
  const isLong = args.valueOpen !== undefined || args.hint !== undefined;
  return [`\n${args.open}`, ...(isLong ? [args.open] : [])];
}

/** The head of a call, after its opener, ends with one of these; the parameters of the call begin directly after it. */
export function headEnds({ headEnd, headEndKept = [], tagEnd = "" }: NamedCall): readonly string[] {
  return headEnd.map((end) => (headEndKept.includes(end) ? end : end + tagEnd));
}

/** What may have a meaning within a value, and what may follow the value's close. */
interface ValueMarkers {
  /** The markers of `kinds`. */
  readonly all: MarkerSet;
  readonly kinds: readonly ("close" | "parameter" | "call" | "call-close" | "section-close")[];
  /** The opener of a parameter, the value's close, then what ends the call. */
  readonly followers: MarkerSet;
}

function markersOf({ format, syntax, args, closes }: TagContext, close: string): ValueMarkers {
  const openers = openersInValue(args);
  const opens = syntax.open ?? [];
  const callCloses = syntax.close?.length ?? 0;
  const make = (): ValueMarkers => ({
    all: new MarkerSet([close, ...openers, ...opens, ...closes.markers]),
    kinds: [
      "close",
      ...openers.map(() => "parameter" as const),
      ...opens.map(() => "call" as const),
      ...closes.markers.map((_, i) => (i < callCloses ? ("call-close" as const) : ("section-close" as const))),
    ],
    followers: new MarkerSet(valueFollowers(format.description, args.open, close, closes.markers)),
  });
  if (close !== args.close) return make();
  let found = compiled.get(closes);
  if (!found) compiled.set(closes, (found = make()));
  return found;
}

/** The markers of values by what ends the call, of formats whose values have the same close for every parameter. */
const compiled = new WeakMap<MarkerSet, ValueMarkers>();

/** What may follow the close of a value: the opener of a parameter, another close, what ends the call, or special tokens that end the turn. */
export function valueFollowers(
  { strip = [] }: Pick<PlainFormat, "strip">,
  open: string,
  close: string,
  closes: readonly string[],
): readonly string[] {
  return [open, close, ...closes, ...strip];
}

/** How a value ended: its close was passed; the next marker is not passed; or the text has ended. */
export type ValueEnd = "closed" | "open" | "text";

/** A place where the value may end. The text from there on is held back until what follows decides. */
interface PossibleEnd {
  /** The length of the pending text before it. */
  readonly at: number;
  /** The value's own close is there. Otherwise the close is missing. */
  readonly closed: boolean;
  /** It is inside a call that the value contains, if that call is complete. */
  readonly nested: boolean;
}

/**
 * Reads the text of the value of parameter `name`, up to its end, and passes it to `push` as it is consumed.
 *
 * A value may contain any marker of its own format. A close counts only where the syntax can go on after it: with the head of a parameter,
 * a close of the call, or the end of the text. Where the call ends, what follows decides: if another close of the value follows, from which
 * the syntax can go on, before another call begins, then that is the end, and the call's close was text. A whole call in the value is text.
 * Without its close, a value ends at the head of a parameter that the tool declares and that has not been written, or where the call ends.
 *
 * The text from a possible end on is held back, and is not bounded: no number of characters makes the one reading or the other certain.
 * It is read again at most twice: once if the end of the text shows that the value ended earlier, after which nothing is held back.
 */
export function* readValueText(
  context: TagContext,
  name: string,
  close: string,
  push: (raw: string) => void,
): Parser<ValueEnd> {
  const { cursor } = context;
  const { all, kinds, followers } = markersOf(context, close);
  /** Calls within the value that are open. */
  let depth = 0;
  let held: PossibleEnd | null = null;
  /** The last character that was passed on. */
  let last = "";
  const take = (raw: string): void => {
    last = raw.at(-1) ?? last;
    push(raw);
  };
  const text = (): void => {
    if (held === null) take(cursor.take());
  };
  const end = ({ at, closed }: PossibleEnd): ValueEnd => {
    cursor.rewind(cursor.pending - at);
    push(cursor.take());
    if (!closed) return "open";
    cursor.pos += close.length;
    return "closed";
  };
  for (;;) {
    const found: number = yield* readToMarker(cursor, all, held === null ? take : undefined);
    if (found < 0) {
      if (held === null) return "text";
      // The first of the possible ends is the end. The rest is read again; now that the text has ended, without alternatives.
      cursor.rewind(cursor.pending - held.at);
      push(cursor.take());
      held = null;
      depth = 0;
      continue;
    }
    const at: number = cursor.pending - all.length(found);
    const nested = depth > 0;
    switch (kinds[found]) {
      case "close": {
        const next = yield* readFollower(context, name, followers);
        if (next === null) text();
        else if (nested) held ??= { at, closed: true, nested };
        else if (next === "parameter" || cursor.ended) return end({ at, closed: true, nested });
        else {
          // All before it is certain.
          push(cursor.take(cursor.pending - at));
          held = { at: 0, closed: true, nested };
        }
        break;
      }
      case "parameter": {
        // Behind a possible end, a missing close is not looked for.
        if (held !== null) break;
        const start = cursor.pending;
        const isNext = all.markers[found] !== context.args.open || last.trim() !== "";
        const opens = isNext && (yield* opensParameter(context, name));
        cursor.rewind(cursor.pending - start);
        // A line end before the head is not part of the value.
        const place: PossibleEnd = { at, closed: false, nested };
        if (opens && !nested) return end(place);
        if (opens) held = place;
        else text();
        break;
      }
      case "call": {
        const start = cursor.pending;
        const opens = !cursor.ended && (yield* opensCall(context, followers));
        cursor.rewind(cursor.pending - start);
        // After the end of the call, another call begins; before it, the value contains a call.
        if (opens && held !== null && !held.nested) return end(held);
        if (opens) depth++;
        text();
        break;
      }
      default: {
        const place: PossibleEnd = { at, closed: false, nested };
        if (nested) {
          if (kinds[found] === "call-close") depth--;
          held ??= place;
        } else if (held !== null) break;
        // A text that was cut off is more likely to end within the value than after a call whose value was not closed.
        else if (cursor.ended && cursor.cut) text();
        else if (cursor.ended) return end(place);
        else held = place;
      }
    }
  }
}

/**
 * Reads what follows a close, including further closes, up to the head of a parameter ("parameter") or the end of the call or the text
 * ("end"), which is not passed. null: the syntax cannot go on, so the close was text.
 */
function* readFollower(context: TagContext, current: string, followers: MarkerSet): Parser<"parameter" | "end" | null> {
  const { cursor, closes } = context;
  for (;;) {
    const space = yield* skipSpace(cursor);
    const found = yield* matchMarker(cursor, followers);
    if (found === 1) continue;
    if (found > 1) {
      cursor.rewind(followers.length(found));
      return "end";
    }
    // Without markers that end it, a call ends with its last parameter.
    if (found < 0) return (yield* cursor.peek()) < 0 || closes.markers.length === 0 ? "end" : null;
    const start = cursor.pending;
    const key = yield* readKey(context);
    const isCut = cursor.ended && cursor.pos >= cursor.text.length;
    cursor.rewind(cursor.pending - start);
    // Between tags there is a line end or nothing. In a sentence, a head without a name, or with one that is no parameter, is text.
    if (space === "inline" && !isCut && (key === null || !mayWrite(context, current, key.name))) return null;
    cursor.rewind(followers.length(found));
    return "parameter";
  }
}

/** Whether the tool may have a parameter of this name that has not been written. `current`: the parameter whose value is read. */
function mayWrite({ call, types, seen }: TagContext, current: string, name: string): boolean {
  return (
    name !== current &&
    !seen.has(name) &&
    (!types.declares(call.name) || types.parameter(call.name, name) !== undefined)
  );
}

/** Skips white space. "line": it contains the end of a line. */
function* skipSpace(cursor: Cursor): Parser<"none" | "inline" | "line"> {
  let space: "none" | "inline" | "line" = "none";
  for (;;) {
    const from = cursor.pos;
    const code = cursor.skipAvailableSpace();
    if (cursor.pos > from && space !== "line") {
      space = cursor.text.slice(from, cursor.pos).includes("\n") ? "line" : "inline";
    }
    if (code !== notYet) return space;
    yield;
  }
}

/** Whether a parameter begins here, after its opener, although the value before it was not closed. */
function* opensParameter(context: TagContext, current: string): Parser<boolean> {
  const { cursor, format, args } = context;
  const key = yield* readKey(context);
  if (key === null || !mayWrite(context, current, key.name)) return false;
  if (args.hint !== undefined && key.kind === "typed") return false;
  if (args.valueOpen !== undefined) {
    const { valueOpen } = args;
    yield* cursor.skipSpace();
    return (
      (yield* matchMarker(
        cursor,
        format.set("value opener", () => [valueOpen], args),
      )) === 0
    );
  }
  return args.trim === "none" || (yield* cursor.peek()) === newline;
}

/**
 * Reads the head of a call after its opener. Returns whether its arguments or its close follow; otherwise the opener is part of a sentence.
 */
function* opensCall(context: TagContext, followers: MarkerSet): Parser<boolean> {
  const { cursor, args, syntax } = context;
  if ((yield* readHeadText(context)) === null) return false;
  const code = yield* cursor.skipSpace();
  if (args.jsonBody === true && code === brace) return true;
  const found = yield* matchMarker(cursor, followers);
  return found === 0 || (found > 1 && found < 2 + (syntax.close?.length ?? 0));
}

function* readHeadText({ cursor, format, syntax }: TagContext): Parser<string | null> {
  const ends = format.set("nested head end", () => headEnds(syntax), syntax);
  const read = yield* readName(cursor, ends, maxHeadLength, (code) => notInHeads.has(code));
  if (read === null || read.text === "") return null;
  const end = ends.markers[read.end] ?? "";
  if (syntax.headEndKept?.includes(end) === true) cursor.rewind(end.length);
  return read.text;
}

/** Characters that are not in the head of a call that a value contains. */
export const notInHeads: ReadonlySet<number> = new Set([..."\n<>{}"].map((character) => character.charCodeAt(0)));
