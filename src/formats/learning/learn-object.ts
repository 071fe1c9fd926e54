import type { Markers, ObjectCall } from "../format.ts";
import { sentinel } from "../read-back.ts";
import { closesOf, split } from "./turn.ts";
import type { Learned } from "./turn.ts";

/** Reads off a call that is a JSON object. */
export function learnObject(text: string, both: string | null): Learned | undefined {
  const object = objectAround(text, sentinel.name);
  if (!object) return undefined;
  const keys = keysOf(object.value);
  if (!keys) return undefined;
  let before = text.slice(0, object.begin);
  let behind = text.slice(object.end);
  const fence = /```(?:json)?\s*\[?\s*$/.test(before) && /^\s*\]?\s*```/.test(behind);
  const array = /\[\s*$/.test(before) && /^\s*\]/.test(behind);
  if (array) {
    before = before.replace(/\[\s*$/, "");
    behind = behind.replace(/^\s*\]/, "");
  }
  if (fence) {
    before = before.replace(/```(?:json)?\s*$/, "");
    behind = behind.replace(/^\s*```/, "");
  }
  const second = both === null ? null : objectAround(both, sentinel.otherName);
  const first = both === null ? null : objectAround(both, sentinel.name);
  const between = both !== null && first && second ? both.slice(first.end, second.begin) : null;
  const isArray = array && (between === null || between.trim() === ",");
  const parts = isArray ? { open: before.trim(), close: behind.trim() } : split(before, behind, between);
  const stream = !isArray && between !== null && /^\s*[;,]?\s*$/.test(between);
  const call: ObjectCall = {
    form: "object",
    ...(stream ? marked(before.trim(), behind.trim()) : marked(parts.open, parts.close)),
    ...(fence && { fence }),
    list: isArray ? "array" : stream ? "stream" : "one",
    ...keys,
  };
  const { section } = parts as { section?: Learned["section"] };
  return { call, ...(section && !stream && { section }) };
}

function marked(open: string, close: string): Pick<ObjectCall, "open" | "close" | "bare" | "argumentsRequired"> {
  if (open === "") return { bare: "start", argumentsRequired: true };
  return { open: [open], ...closesOf(close) };
}

interface Place {
  readonly begin: number;
  readonly end: number;
  readonly value: Readonly<Record<string, unknown>>;
}

/** The outermost JSON object that holds this word. */
export function objectAround(text: string, word: string): Place | undefined {
  const at = text.indexOf(word);
  if (at < 0) return undefined;
  for (let begin = text.indexOf("{"); begin >= 0 && begin < at; begin = text.indexOf("{", begin + 1)) {
    const place = objectAt(text, begin);
    if (place && place.end > at) return place;
  }
  return undefined;
}

/** The JSON object that begins here. */
export function objectAt(text: string, begin: number): Place | undefined {
  for (let end = text.indexOf("}", begin); end >= 0; end = text.indexOf("}", end + 1)) {
    try {
      const value: unknown = JSON.parse(text.slice(begin, end + 1));
      return { begin, end: end + 1, value: value as Readonly<Record<string, unknown>> };
    } catch {
      // Not yet the bracket that closes it.
    }
  }
  return undefined;
}

/** Under which keys the name, the arguments and the id stand. */
function keysOf(object: Readonly<Record<string, unknown>>): Pick<ObjectCall, "name" | "arguments" | "id"> | undefined {
  const entries = Object.entries(object);
  const isArguments = (value: unknown): boolean => JSON.stringify(value)?.includes(sentinel.keys[0]) === true;
  if (entries.length === 1 && entries[0]?.[0] === sentinel.name) return { name: "key", arguments: ["arguments"] };
  const name = entries.find(([, value]) => value === sentinel.name)?.[0];
  const args = entries.find(([, value]) => isArguments(value))?.[0];
  const id = entries.find(([, value]) => value === sentinel.id)?.[0];
  if (name === undefined || args === undefined) return undefined;
  return { name: [name] as Markers, arguments: [args] as Markers, ...(id !== undefined && { id }) };
}
