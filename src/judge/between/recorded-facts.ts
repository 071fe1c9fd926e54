import { digestText } from "../../wire/core/digest.ts";
import { isObject } from "../../wire/core/json.ts";
import { geminiPath } from "../../wire/apis/gemini/port.ts";
import { recordedAnswers } from "../capture/read-captures.ts";
import { type Api, type Fact, type Json, markerOf, portOf, roots, turnsOf } from "./facts.ts";

/** A text of captures, and what it is called in messages. */
export interface CaptureFile {
  readonly name: string;
  readonly text: string;
}

/**
 * The requests of recorded sessions (`truewire record`, an export of Inspect, HAR) to an API, in their order. Every message of the user and
 * every result has a marker of its own, so that a request is recognized by its last one, and begins as the one before it. Throws an Error
 * that says what is expected.
 */
export function recordedFactsOf(api: Api, model: string, files: readonly CaptureFile[]): Fact[] {
  const facts = new Map<string, Fact>();
  const sessions = new Map<string, { readonly number: number; last?: Fact }>();
  for (const { name, text } of files)
    for (const { request, path, method } of recordedAnswers(text, name)) {
      const asked = geminiPath(path);
      const isAsked = method === "POST" && (asked?.path ?? path) === (asked ? "" : roots[api]) + portOf(api).path;
      const items = request?.[turnsOf[api]];
      if (!isAsked || !request || (!Array.isArray(items) && typeof items !== "string")) continue;
      const list = typeof items === "string" ? [{ role: "user", content: items }] : items.filter(isObject);
      const begin = beginOf(request, list);
      const session = sessions.get(begin) ?? { number: sessions.size };
      sessions.set(begin, session);
      const { model: _, stream: sent, [turnsOf[api]]: __, ...members } = request;
      const stream = asked?.stream ?? (sent === true || (api === "ollama" && sent !== false));
      const ids = list.map((item, at) => `recorded-${session.number}-${at}-${digestText(JSON.stringify(item))}`);
      const marked = list.map((item, at) => (isFromClient(item) ? withMarker(item, markerOf(ids[at] ?? "")) : item));
      const last = marked.findLastIndex((item, at) => item !== list[at]);
      const id = ids[last];
      // A request that is repeated shows nothing new.
      if (id === undefined || facts.has(id)) continue;
      const { last: before } = session;
      const earlier = JSON.stringify(before?.body[turnsOf[api]] ?? null).slice(0, -1);
      const continues = before && JSON.stringify(marked).startsWith(earlier) && { continues: before.id };
      const inBody = asked ? {} : { model, ...(sent !== undefined && { stream }) };
      const title = `request ${facts.size + 1} of ${name}`;
      const body = { ...inBody, ...members, [turnsOf[api]]: marked };
      const fact: Fact = { id, title, side: "request", stream, isQuick: true, body, ...continues };
      facts.set(id, fact);
      session.last = fact;
    }
  if (facts.size > 0) return [...facts.values()];
  throw new Error(
    `expected recorded requests to ${roots[api]}${portOf(api).path} in ${files.map(({ name }) => name).join(", ") || "the folder"}, as truewire record and Inspect's export write them`,
  );
}

/** What the requests of one session have in common. */
function beginOf(request: Json, [first]: readonly Json[]): string {
  return digestText(JSON.stringify([first, request["tools"], request["system"] ?? request["instructions"]]));
}

/** Texts of the user, and results of calls. */
function isFromClient({ role, type }: Json): boolean {
  return role === "user" || role === "tool" || (typeof type === "string" && type.endsWith("call_output"));
}

/** The item with a marker at the end of its last text; the item itself: it has none. */
function withMarker(item: Json, marker: string): Json {
  for (const name of ["content", "output", "parts", "text"]) {
    const value = item[name];
    if (typeof value === "string") return { ...item, [name]: `${value} ${marker}` };
    if (!Array.isArray(value)) continue;
    for (const [at, part] of [...value.entries()].toReversed()) {
      const marked = isObject(part) ? withMarker(part, marker) : part;
      if (marked !== part)
        return { ...item, [name]: value.map((one: unknown, index) => (index === at ? marked : one)) };
    }
  }
  return item;
}
