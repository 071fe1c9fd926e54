import type { Args, CallSyntax, Markers, NamedCall, ObjectCall, PlainFormat, Reasoning } from "./format.ts";
import { readsBack, type Render, renderCalls, renderTurn, sentinel } from "./read-back.ts";

/** In characters. No template of a model writes more around a call; what is read here may be searched several times. */
const maxRendering = 10_000;

/**
 * Learns a format from how a chat template renders a call of the assistant: the positions of the name, the keys and the values, and the
 * text around them. Returns undefined if the template renders no calls, or renders them in a way that fits none of the families.
 */
export function learnFormat(render: Render): PlainFormat | undefined {
  const turn = renderCalls(render, 1);
  if (turn === null || turn.length > maxRendering) return undefined;
  const two = renderCalls(render, 2);
  const begin = startOfCall(turn);
  const end = callsEnd(render, turn, 1);
  const text = turn.slice(begin, end);
  const both = two === null ? null : two.slice(startOfCall(two), callsEnd(render, two, 2));
  const reasoning = learnReasoning(render);
  const formats = [learnObject, learnNamed]
    .map((learn) => learn(text, both))
    .filter((learned) => learned !== undefined)
    .map((learned) => describe(learned, reasoning))
    .filter((format) => readsBack(format, turn.slice(begin)));
  // Some templates render a second call as a turn of its own; then reading one call back suffices.
  return formats.find((format) => two !== null && readsBack(format, two, 2)) ?? formats[0];
}

function describe({ section, call }: Learned, reasoning: Reasoning | undefined): PlainFormat {
  return {
    kind: "plain",
    id: "learned",
    ...(reasoning && { reasoning }),
    ...(section && {
      section: {
        open: [section.open] as Markers,
        close: closesOf(section.close).close ?? [],
        ...(section.perCall && { perCall: true }),
      },
    }),
    calls: [call satisfies CallSyntax],
  };
}

/** The syntax of a call, and the markers around all calls. */
interface Learned {
  readonly call: CallSyntax;
  readonly section?: { readonly open: string; readonly close: string; readonly perCall?: boolean };
}

/** The start of the call in the assistant's turn: after the empty reasoning that the template writes before it. */
function startOfCall(turn: string): number {
  const name = turn.indexOf(sentinel.name);
  const close = /<\/[^<>]*think[^<>]*>|<[^<>/]*\/think[^<>]*>/g;
  let at = 0;
  for (const found of turn.slice(0, Math.max(0, name)).matchAll(close)) at = found.index + found[0].length;
  return at;
}

/**
 * The end of the calls in the assistant's turn, which is where the turn ends. What follows an answer in text, independently of the answer,
 * is the end of a turn, and the same follows the calls.
 */
function callsEnd(render: Render, turn: string, calls: 1 | 2): number {
  const alone = renderCalls(render, calls, false);
  const [end, otherEnd] = [sentinel.answer, sentinel.reasoning].map((text) => endOfTurn(render, text));
  if (alone === null || end === undefined || end !== otherEnd) return callsEndByMarker(render, turn);
  const text = alone.endsWith(end) ? alone.slice(0, alone.length - end.length) : alone;
  return turn.startsWith(text) && text.includes(sentinel.name) ? text.length : callsEndByMarker(render, turn);
}

/** What follows the text of the last turn, or undefined if unknown. */
function endOfTurn(render: Render, text: string): string | undefined {
  const turn = renderTurn(render, [{ role: "assistant", content: text }]);
  const at = turn?.lastIndexOf(text) ?? -1;
  return turn === null || at < 0 ? undefined : turn.slice(at + text.length);
}

/**
 * The end of the calls for templates that render the last turn differently: at the first marker or blank line that also follows a turn of
 * text.
 */
function callsEndByMarker(render: Render, turn: string): number {
  const last = Math.max(turn.lastIndexOf(sentinel.keys[1]), turn.lastIndexOf(String(sentinel.values[1])));
  const results = turn.indexOf(sentinel.result);
  const limit = results < 0 ? turn.length : results;
  const plain = renderTurn(render, [
    { role: "assistant", content: sentinel.answer },
    { role: "user", content: sentinel.question },
  ]);
  const after = plain?.slice(plain.indexOf(sentinel.answer) + sentinel.answer.length) ?? "";
  // The marker that ends a turn of text also ends a turn of calls.
  const [marker = ""] = /<[^<>]+>|\n\n/.exec(after) ?? [];
  const at = marker === "" ? -1 : turn.indexOf(marker, last);
  return at >= 0 && at <= limit ? at : limit;
}

/** The common suffix of two texts, starting outside of a marker, without white space around it. */
function commonEnd(one: string, other: string): string {
  let length = 0;
  while (length < one.length && length < other.length && one.at(-1 - length) === other.at(-1 - length)) length++;
  // The end of the preceding marker, a quote or a bracket, may precede it in both texts.
  const common = one.slice(one.length - length).replace(/^["'\]>]+\s*(?=[<[])/, "");
  if (length === one.length || length === other.length) return common.trim();
  const marker = common.search(/[<[\s]/);
  return marker < 0 ? "" : common.slice(marker).trim();
}

/** The common prefix of two texts, up to the end of a marker, without white space around it. */
function commonBegin(one: string, other: string): string {
  let length = 0;
  while (length < one.length && length < other.length && one[length] === other[length]) length++;
  const common = one.slice(0, length);
  if (length === one.length || length === other.length) return common.trim();
  const marker = Math.max(common.lastIndexOf(">"), common.lastIndexOf("]"), common.search(/\s+$/));
  return common.slice(0, marker + 1).trim();
}

/**
 * The spellings of a close: the whole text, and, if it is several markers in a row, the first of them, because the others may be the end of
 * the turn.
 */
function closesOf(close: string): { close?: Markers } {
  if (close === "") return {};
  const first = /^(?:<[^<>]+>|\[[^[\]]+\])(?=\s*[<[])/.exec(close)?.[0];
  return { close: first === undefined ? [close] : [close, first] };
}

/**
 * Splits the text before the first call, between two calls and after the last call into the markers of a call and of a section. Without a
 * second call, everything belongs to the call.
 */
function split(
  before: string,
  after: string,
  between: string | null,
): { open: string; close: string; section?: { open: string; close: string } } {
  if (between === null) return { open: before.trim(), close: after.trim() };
  const open = commonEnd(before, between);
  const close = commonBegin(after, between);
  const outerOpen = before.slice(
    0,
    before.length - before.trimEnd().length === 0 ? undefined : before.trimEnd().length,
  );
  const section = {
    open: outerOpen.slice(0, outerOpen.length - open.length).trim(),
    close: after.trim().slice(close.length).trim(),
  };
  // What does not also occur between two calls is not part of them.
  if (section.open === "") return { open, close };
  return { open, close, section };
}

/**
 * The markers of reasoning: those around reasoning that the template renders, otherwise those that occur in any turn. undefined if there
 * are none.
 */
function learnReasoning(render: Render): Reasoning | undefined {
  const turn = renderTurn(render, [
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: sentinel.reasoning },
        { type: "text", text: sentinel.answer },
      ],
    },
  ]);
  const at = turn?.indexOf(sentinel.reasoning) ?? -1;
  if (turn !== null && at >= 0) {
    const open = /(<[^<>]+>|\[[A-Z]+\])\s*$/.exec(turn.slice(0, at))?.[1];
    const close = /^\s*(<[^<>]+>|\[\/?[A-Z]+\])/.exec(turn.slice(at + sentinel.reasoning.length))?.[1];
    if (open !== undefined && close !== undefined) return reasoningOf(open, close);
    // The opener may already be in the prompt.
    if (close !== undefined) return reasoningOf(close.replace("/", ""), close);
  }
  const written = /(<[^<>/]*think[^<>]*>)\s*(<[^<>]*\/[^<>]*think[^<>]*>)/.exec(turn ?? "");
  return written ? reasoningOf(written[1] ?? "", written[2] ?? "") : undefined;
}

function reasoningOf(open: string, close: string): Reasoning {
  return { open: [open], close: [close], assume: "outside" };
}

/** Learns the syntax of a call that is a JSON object. */
function learnObject(text: string, both: string | null): Learned | undefined {
  const object = objectAround(text, sentinel.name);
  if (!object) return undefined;
  const keys = keysOf(object.value);
  if (!keys) return undefined;
  let before = text.slice(0, object.begin);
  let after = text.slice(object.end);
  const fence = /```(?:json)?\s*\[?\s*$/.test(before) && /^\s*\]?\s*```/.test(after);
  const array = /\[\s*$/.test(before) && /^\s*\]/.test(after);
  if (array) {
    before = before.replace(/\[\s*$/, "");
    after = after.replace(/^\s*\]/, "");
  }
  if (fence) {
    before = before.replace(/```(?:json)?\s*$/, "");
    after = after.replace(/^\s*```/, "");
  }
  const second = both === null ? null : objectAround(both, sentinel.otherName);
  const first = both === null ? null : objectAround(both, sentinel.name);
  const between = both !== null && first && second ? both.slice(first.end, second.begin) : null;
  const isArray = array && (between === null || between.trim() === ",");
  const parts = isArray ? { open: before.trim(), close: after.trim() } : split(before, after, between);
  const stream = !isArray && between !== null && /^\s*[;,]?\s*$/.test(between);
  const call: ObjectCall = {
    form: "object",
    ...(stream ? marked(before.trim(), after.trim()) : marked(parts.open, parts.close)),
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

/** The outermost JSON object that contains this word. */
function objectAround(text: string, word: string): Place | undefined {
  const at = text.indexOf(word);
  if (at < 0) return undefined;
  for (let begin = text.indexOf("{"); begin >= 0 && begin < at; begin = text.indexOf("{", begin + 1)) {
    const place = objectAt(text, begin);
    if (place && place.end > at) return place;
  }
  return undefined;
}

/** The JSON object that begins at this position. */
function objectAt(text: string, begin: number): Place | undefined {
  for (let end = text.indexOf("}", begin); end >= 0; end = text.indexOf("}", end + 1)) {
    try {
      const value: unknown = JSON.parse(text.slice(begin, end + 1));
      return { begin, end: end + 1, value: value as Readonly<Record<string, unknown>> };
    } catch {
      // Not the closing bracket of the object.
    }
  }
  return undefined;
}

/** The keys of the name, the arguments and the id. */
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

/** Learns the syntax of a call whose name is in plain text, with arguments in JSON, as a Python call, or in tags. */
function learnNamed(text: string, both: string | null): Learned | undefined {
  // The last occurrence before the arguments: a header may also contain the name.
  const key = text.indexOf(sentinel.keys[0]);
  const at = text.lastIndexOf(sentinel.name, key);
  if (key < 0 || at < 0) return undefined;
  const between = text.slice(at + sentinel.name.length, key);
  if (/^\s*\(\s*$/.test(between)) return learnPython(text, at);
  const brace = text.indexOf("{", at);
  const json = brace >= 0 && brace < key ? objectAt(text, brace) : undefined;
  return json ? learnJson(text, both, at, json) : learnTags(text, both, at);
}

function learnPython(text: string, at: number): Learned | undefined {
  const paren = text.indexOf(")", text.lastIndexOf(String(sentinel.values[1])));
  if (paren < 0) return undefined;
  const before = text.slice(0, at).trim();
  const after = text.slice(paren + 1).trim();
  const list = before.endsWith("[") && after.startsWith("]");
  const open = list ? before.slice(0, -1).trim() : before;
  const close = list ? after.slice(1).trim() : after;
  const call: NamedCall = {
    form: "named",
    ...(open === "" ? { bare: "whole" } : { open: [open] }),
    ...closesOf(close),
    head: "{name}",
    headEnd: ["("],
    list: list ? "python" : "lines",
    args: { kind: "kwargs" },
  };
  return { call };
}

function learnJson(
  text: string,
  both: string | null,
  at: number,
  json: { readonly begin: number; readonly end: number },
): Learned | undefined {
  const link = text.slice(at + sentinel.name.length, json.begin);
  const fence = link.includes("```");
  const after = text.slice(json.end).replace(fence ? /^\s*```/ : "", "");
  const headEnd = link.replace(/\s*```(?:json)?\s*$/, fence ? "\n" : "");
  const { open, head, tail } = headOf(text.slice(0, at), headEnd);
  const second = between(both);
  const parts = split(open, after, second);
  if (parts.open === "") return undefined;
  const end = tail.trim() === "" && tail.includes("\n") ? "\n" : tail.trim();
  const call: NamedCall = {
    form: "named",
    open: [parts.open],
    ...closesOf(parts.close),
    head,
    ...(end === "" ? { headEnd: ["{"], headEndKept: ["{"] } : { headEnd: [end] }),
    ...(fence && { fence }),
    args: { kind: "json" },
  };
  return { call, ...(parts.section && { section: parts.section }) };

  /** The text between two calls, from the end of the first call's arguments to the name of the second. */
  function between(calls: string | null): string | null {
    if (calls === null) return null;
    const first = calls.indexOf("{", calls.indexOf(sentinel.name));
    const place = first < 0 ? undefined : objectAt(calls, first);
    const other = place ? calls.indexOf(sentinel.otherName, place.end) : -1;
    if (!place || other < 0) return null;
    const gap = calls.slice(place.end, other).replace(fence ? /^\s*```/ : "", "");
    return headOf(gap, "").open;
  }
}

/** Splits the text around a name into the marker before the head, the head's pattern, and what ends the head. */
function headOf(before: string, after: string): { open: string; head: string; tail: string } {
  const ids = new RegExp(`${sentinel.id}|${sentinel.otherId}`);
  const id = ids.exec(before);
  const plain = id ? id.index : before.length - (/[\w.:-]*$/.exec(before)?.[0].length ?? 0);
  const lead = before.slice(plain).replace(ids, "{id}");
  const index = /^:\d+/.exec(after)?.[0] ?? "";
  const later = ids.exec(after);
  const suffix = later ? after.slice(0, later.index + later[0].length) : index;
  return {
    open: before.slice(0, plain),
    head: `${lead}{name}${later ? suffix.replace(ids, "{id}") : index === "" ? "" : ":{index}"}`,
    tail: after.slice(suffix.length),
  };
}

function learnTags(text: string, both: string | null, at: number): Learned | undefined {
  const [key, otherKey] = sentinel.keys;
  const [value, otherValue] = sentinel.values.map(String);
  const k1 = text.indexOf(key, at);
  const v1 = text.indexOf(value ?? "", k1);
  const k2 = text.indexOf(otherKey, v1);
  const v2 = text.indexOf(otherValue ?? "", k2);
  if (k1 < 0 || v1 < k1 || k2 < v1 || v2 < k2) return undefined;
  const intro = text.slice(at + sentinel.name.length, k1);
  const link = text.slice(k1 + key.length, v1);
  const otherLink = text.slice(k2 + otherKey.length, v2);
  const gap = text.slice(v1 + (value ?? "").length, k2);
  const rest = text.slice(v2 + (otherValue ?? "").length);
  const open = commonEnd(intro, gap);
  if (open === "") return undefined;
  const close = gap.slice(0, gap.length - open.length).trim();
  const headEnd = intro.slice(0, intro.length - open.length);
  const outer = rest.trim().slice(close.replaceAll(key, otherKey).length);
  const second = both === null ? null : gapBetween(both, close.replaceAll(key, otherKey));
  const parts = split(text.slice(0, at), outer, second);
  if (parts.open === "" && !parts.section) return undefined;
  const section: Learned["section"] = parts.section ?? wrapper(parts.open, parts.close);
  const callOpen = section?.perCall ? parts.open.slice(section.open.length).trim() : parts.open;
  const callClose = section?.perCall ? parts.close.slice(0, -section.close.length).trim() : parts.close;
  const ending = headEnd.trim();
  const call: NamedCall = {
    form: "named",
    open: [callOpen],
    ...closesOf(callClose),
    head: "{name}",
    ...(ending !== ""
      ? { headEnd: [ending] }
      : headEnd.includes("\n")
        ? { headEnd: ["\n", open], headEndKept: [open] }
        : { headEnd: [open], headEndKept: [open] }),
    args: tagArgs(open, link, otherLink, close.replaceAll(key, "{key}"), gap),
  };
  return { call, ...(section && { section }) };
}

/** Two markers in a row before each call, and two after it: the outer ones are a section around each call, with any white space between. */
function wrapper(open: string, close: string): Learned["section"] {
  const outerOpen = /^<[^<>]+>(?=\s*<)/.exec(open)?.[0];
  const outerClose = /(?<=>\s*)<\/[^<>]+>$/.exec(close)?.[0];
  if (outerOpen === undefined || outerClose === undefined) return undefined;
  return { open: outerOpen, close: outerClose, perCall: true };
}

function gapBetween(both: string, close: string): string | null {
  const end = both.indexOf(String(sentinel.values[1]));
  const other = both.indexOf(sentinel.otherName, end);
  if (end < 0 || other < 0) return null;
  return both
    .slice(end + String(sentinel.values[1]).length, other)
    .trimStart()
    .slice(close.length);
}

/** What separates key and value: the end of the tag, optionally an attribute with the type, optionally a tag around the value. */
function tagArgs(open: string, link: string, otherLink: string, close: string, gap: string): Args {
  const shared = { kind: "tagged", open, close } as const;
  const trim = link.endsWith("\n") && gap.startsWith("\n") ? "newline" : "none";
  const attribute = /^(\S)\s+(\w+)="(\w+)"(\S+)$/.exec(link);
  const other = /^(\S)\s+(\w+)="(\w+)"(\S+)$/.exec(otherLink);
  if (attribute && other && attribute[3] !== other[3]) {
    const [, keyEnd = "", name = "", string = "", tagEnd = ""] = attribute;
    return { ...shared, keyEnd, tagEnd, trim, hint: { attribute: name, string, other: other[3] ?? "" } };
  }
  const tags = /^(\S+?>)\s*(<\S+>)$/.exec(link.trim());
  if (tags) return { ...shared, keyEnd: tags[1] ?? "", valueOpen: tags[2] ?? "", trim };
  return { ...shared, keyEnd: link.trim(), trim };
}
