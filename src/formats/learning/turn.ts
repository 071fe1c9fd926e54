import type { Call, Markers } from "../format.ts";
import { renderCalls, renderTurn, sentinel } from "../read-back.ts";
import type { Render } from "../read-back.ts";

/** A call's description, and the markers around all calls. */
export interface Learned {
  readonly call: Call;
  readonly section?: { readonly open: string; readonly close: string; readonly perCall?: boolean };
}

/** Where the call begins in the assistant's turn: behind an empty thought that the template writes before it. */
export function startOfCall(turn: string): number {
  const name = turn.indexOf(sentinel.name);
  const close = /<\/[^<>]*think[^<>]*>|<[^<>/]*\/think[^<>]*>/g;
  let at = 0;
  for (const found of turn.slice(0, Math.max(0, name)).matchAll(close)) at = found.index + found[0].length;
  return at;
}

/**
 * Where the calls end in the assistant's turn: where the turn itself does. A conversation that ends with it shows that: what stands
 * behind an answer in text, whatever the answer, is the turn's end, and stands behind the calls, too.
 */
export function callsEnd(render: Render, turn: string, calls: 1 | 2): number {
  const alone = renderCalls(render, calls, false);
  const [end, otherEnd] = [sentinel.answer, sentinel.thought].map((text) => endOfTurn(render, text));
  if (alone === null || end === undefined || end !== otherEnd) return callsEndByMarker(render, turn);
  const text = alone.endsWith(end) ? alone.slice(0, alone.length - end.length) : alone;
  return turn.startsWith(text) && text.includes(sentinel.name) ? text.length : callsEndByMarker(render, turn);
}

/** What stands behind the text of the last turn; undefined: unknown. */
function endOfTurn(render: Render, text: string): string | undefined {
  const turn = renderTurn(render, [{ role: "assistant", content: text }]);
  const at = turn?.lastIndexOf(text) ?? -1;
  return turn === null || at < 0 ? undefined : turn.slice(at + text.length);
}

/** The same for templates that write the last turn otherwise: the first marker behind a text, or a blank line, ends its turn. */
function callsEndByMarker(render: Render, turn: string): number {
  const last = Math.max(turn.lastIndexOf(sentinel.keys[1]), turn.lastIndexOf(String(sentinel.values[1])));
  const results = turn.indexOf(sentinel.result);
  const limit = results < 0 ? turn.length : results;
  const plain = renderTurn(render, [
    { role: "assistant", content: sentinel.answer },
    { role: "user", content: sentinel.question },
  ]);
  const behind = plain?.slice(plain.indexOf(sentinel.answer) + sentinel.answer.length) ?? "";
  // The marker that ends a turn of text ends a turn of calls, too.
  const [mark = ""] = /<[^<>]+>|\n\n/.exec(behind) ?? [];
  const at = mark === "" ? -1 : turn.indexOf(mark, last);
  return at >= 0 && at <= limit ? at : limit;
}

/** What two texts end with in common, not from inside a marker, without white space around it. */
export function commonEnd(one: string, other: string): string {
  let length = 0;
  while (length < one.length && length < other.length && one.at(-1 - length) === other.at(-1 - length)) length++;
  // What ends the marker before, a quote or a bracket, may stand at the beginning of both.
  const common = one.slice(one.length - length).replace(/^["'\]>]+\s*(?=[<[])/, "");
  if (length === one.length || length === other.length) return common.trim();
  const mark = common.search(/[<[\s]/);
  return mark < 0 ? "" : common.slice(mark).trim();
}

/** What two texts begin with in common, up to the end of a marker, without white space around it. */
export function commonBegin(one: string, other: string): string {
  let length = 0;
  while (length < one.length && length < other.length && one[length] === other[length]) length++;
  const common = one.slice(0, length);
  if (length === one.length || length === other.length) return common.trim();
  const mark = Math.max(common.lastIndexOf(">"), common.lastIndexOf("]"), common.search(/\s+$/));
  return common.slice(0, mark + 1).trim();
}

/** Spellings of a close: as it stands, and, of several markers in a row, the first alone; the others may be the turn's end. */
export function closesOf(close: string): { close?: Markers } {
  if (close === "") return {};
  const first = /^(?:<[^<>]+>|\[[^[\]]+\])(?=\s*[<[])/.exec(close)?.[0];
  return { close: first === undefined ? [close] : [close, first] };
}

/**
 * Parts what stands before the first call, between two calls and behind the last into the markers of a call and of a section. Without a
 * second call everything belongs to the call.
 */
export function split(
  before: string,
  behind: string,
  between: string | null,
): { open: string; close: string; section?: { open: string; close: string } } {
  if (between === null) return { open: before.trim(), close: behind.trim() };
  const open = commonEnd(before, between);
  const close = commonBegin(behind, between);
  const outerOpen = before.slice(
    0,
    before.length - before.trimEnd().length === 0 ? undefined : before.trimEnd().length,
  );
  const section = {
    open: outerOpen.slice(0, outerOpen.length - open.length).trim(),
    close: behind.trim().slice(close.length).trim(),
  };
  // What does not stand between two calls either is no part of them.
  if (section.open === "") return { open, close };
  return { open, close, section };
}
