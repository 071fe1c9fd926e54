import type { TaggedArgs } from "../format.ts";
import { awaited } from "./cursor.ts";
import type { Reading } from "./cursor.ts";
import type { CallAtHand, CallDesk } from "./desk.ts";
import { MarkerSet, matchMarker, readToMarker } from "./marker-set.ts";
import { nestedValue } from "./nested-value.ts";
import { Pile } from "./pile.ts";
import { typedValue } from "./tool-types.ts";
import type { DeclaredTypes } from "./tool-types.ts";
import { ValueWriter } from "./value-writer.ts";
import type { ValueKind } from "./value-writer.ts";

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
