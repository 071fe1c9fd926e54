import type { Frame, SseLine } from "./frames.ts";
import type { SchemaViolation, Violation } from "./rule.ts";
import { placeOfPath } from "./json-place.ts";
import type { BodyView, ChoicePart, Chunk, Json } from "./view.ts";
import { isObject } from "../../../wire/core/json.ts";

/** Returns a violation by a whole frame. */
export function atFrame(frame: Frame, found: string): Violation {
  return { start: frame.start, end: frame.lines.at(-1)?.end ?? frame.end, found };
}

export function atLine(line: SseLine, found: string): Violation {
  return { start: line.start, end: line.end, found };
}

/** Returns a violation by a member of a chunk. Its place is the first occurrence of the name in the data, or the whole frame. */
export function atMember(chunk: Chunk, name: string, found: string): Violation {
  const { frame } = chunk;
  const inData = frame.data?.indexOf(`"${name}"`) ?? -1;
  if (inData < 0) return atFrame(frame, found);
  const start = frame.dataStart + inData;
  return { start, end: Math.min(start + name.length + 2, frame.end), found };
}

/** Returns a violation at a path in a chunk: the name of its last member, or the innermost value that exists. */
export function atChunkPath({ frame }: Chunk, keys: readonly PropertyKey[], found: string): Violation {
  const place = placeOfPath(frame.data ?? "", keys);
  const offset = (at: number): number => Math.min(frame.dataStart + at, frame.end);
  return { start: offset(place.start), end: offset(place.end), found };
}

/** Returns a violation of a schema in a chunk. `before`: what the sentence begins with. */
export function atPath(chunk: Chunk, { keys, path, found, member }: SchemaViolation, before = ""): Violation {
  return { ...atChunkPath(chunk, keys, `${before}${path} ${found}`), member };
}

/** Returns a violation of a schema in a body. */
export function atBodyPath({ exchange }: BodyView, { keys, path, found, member }: SchemaViolation): Violation {
  return { ...placeOfPath(exchange.response.body, keys), found: `${path} ${found}`, member };
}

/** Returns a violation at a member of a choice or of its delta. */
export function atChoicePart({ chunk, choice, delta }: ChoicePart, name: string, found: string): Violation {
  const inChoice = [...pathOfChoice(chunk, choice), ...(Object.hasOwn(delta, name) ? ["delta", name] : [name])];
  const isThere = Object.hasOwn(delta, name) || Object.hasOwn(choice, name);
  return isThere ? atChunkPath(chunk, inChoice, found) : atMember(chunk, name, found);
}

/** The path of a choice in the JSON of its chunk. */
export function pathOfChoice({ value }: Chunk, choice: Json): (string | number)[] {
  return ["choices", Array.isArray(value.choices) ? value.choices.indexOf(choice) : 0];
}

/** Returns a violation at the end of a body, for what is missing there. */
export function atEnd(body: string, found: string): Violation {
  return { start: body.length, end: body.length, found };
}

/** Returns a value as JSON for a sentence, at most 60 characters long. */
export function shown(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

/** Returns why a text is not one JSON object: a number that JSON does not have, or the kind of text that it begins with. */
export function notJson(text: string): Violation {
  for (const { 0: found, index, groups } of text.matchAll(/"(?:[^"\\]|\\.)*"?|(?<number>NaN|-?Infinity)/g)) {
    if (groups?.number !== undefined)
      return { start: index, end: index + found.length, found: `${found}, which is not JSON` };
  }
  return { start: 0, end: Math.min(text.length, 80), found: kindOf(text) };
}

function kindOf(text: string): string {
  if (text.trim() === "") return "an empty body";
  if (/^\s*</.test(text)) return "an HTML page";
  return text.startsWith("data:") ? "a stream that was not requested" : "not a JSON object";
}

/** Yields what is wrong with ids that must be different, non-empty strings, with their place in the list. */
export function* ownIdViolations(
  name: string,
  ids: readonly unknown[],
): Generator<{ readonly at: number; readonly found: string }> {
  for (const [at, id] of ids.entries()) {
    if (typeof id !== "string" || id === "") yield { at, found: `${name} is ${shown(id)}` };
    else if (ids.indexOf(id) !== at) yield { at, found: `the ${name} ${shown(id)} twice` };
  }
}

/** Returns a violation at a member of a body: the first occurrence of its name, or the whole body if there is none. */
export function atName(view: BodyView, name: string, found: string): Violation {
  const { body } = view.exchange.response;
  const start = body.indexOf(`"${name}"`);
  return start < 0 ? { start: 0, end: body.length, found } : { start, end: start + name.length + 2, found };
}

/** Returns the body as an object, or `{}` if it is not one, which `body/json` reports. */
export function objectOf(view: BodyView): Json {
  return isObject(view.value) ? view.value : {};
}

export function bodyChoices(view: BodyView): readonly Json[] {
  const { choices } = objectOf(view);
  return Array.isArray(choices) ? choices.filter(isObject) : [];
}

export function messageOf(choice: Json): Json {
  return isObject(choice.message) ? choice.message : {};
}

/** Returns whether a body is a successful answer of chat or completions. A body that is not a JSON object is left to `body/json`. */
export function isAnswer(view: BodyView): boolean {
  const { endpoint, response } = view.exchange;
  return response.status === 200 && (endpoint === "chat" || endpoint === "completions") && isObject(view.value);
}

export function isChat(view: BodyView): boolean {
  return isAnswer(view) && view.exchange.endpoint === "chat";
}
