import type { Args, NamedCall } from "../format.ts";
import { sentinel } from "../read-back.ts";
import { objectAt } from "./learn-object.ts";
import { closesOf, commonEnd, split } from "./turn.ts";
import type { Learned } from "./turn.ts";

/** Reads off a call whose name stands in plain text, with arguments in JSON, as a Python call, or in tags. */
export function learnNamed(text: string, both: string | null): Learned | undefined {
  // The last place before the arguments: a header may hold the name as well.
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
  const behind = text.slice(paren + 1).trim();
  const list = before.endsWith("[") && behind.startsWith("]");
  const open = list ? before.slice(0, -1).trim() : before;
  const close = list ? behind.slice(1).trim() : behind;
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
  const behind = text.slice(json.end).replace(fence ? /^\s*```/ : "", "");
  const headEnd = link.replace(/\s*```(?:json)?\s*$/, fence ? "\n" : "");
  const { open, head, tail } = headOf(text.slice(0, at), headEnd);
  const second = between(both);
  const parts = split(open, behind, second);
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

  /** What stands between two calls, from the end of the first's arguments to the second's name. */
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

/** Parts the text around a name: the marker before it, what belongs to the head, and what ends the head. */
function headOf(before: string, behind: string): { open: string; head: string; tail: string } {
  const ids = new RegExp(`${sentinel.id}|${sentinel.otherId}`);
  const id = ids.exec(before);
  const plain = id ? id.index : before.length - (/[\w.:-]*$/.exec(before)?.[0].length ?? 0);
  const lead = before.slice(plain).replace(ids, "{id}");
  const index = /^:\d+/.exec(behind)?.[0] ?? "";
  const later = ids.exec(behind);
  const suffix = later ? behind.slice(0, later.index + later[0].length) : index;
  return {
    open: before.slice(0, plain),
    head: `${lead}{name}${later ? suffix.replace(ids, "{id}") : index === "" ? "" : ":{index}"}`,
    tail: behind.slice(suffix.length),
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

/** Two markers in a row before each call, and two behind it: the outer ones are a section of each call, with any white space between. */
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

/** What stands between key and value: the tag's end, perhaps an attribute that tells the type, perhaps a tag around the value. */
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
