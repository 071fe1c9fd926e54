import type { Call } from "../format.ts";
import { renderTurn, sentinel } from "../read-back.ts";
import type { Render } from "../read-back.ts";

/** A call's description, and the markers around all calls. */
export interface Learned {
  readonly call: Call;
  readonly section?: { readonly open: string; readonly close: string };
}

/** Where the call begins in the assistant's turn: behind an empty thought that the template writes before it. */
export function startOfCall(turn: string): number {
  const name = turn.indexOf(sentinel.name);
  const close = /<\/[^<>]*think[^<>]*>|<[^<>/]*\/think[^<>]*>/g;
  let at = 0;
  for (const found of turn.slice(0, Math.max(0, name)).matchAll(close)) at = found.index + found[0].length;
  return at;
}

/** Where the calls end in the assistant's turn: where the turn itself does, which shows in a turn of text. */
export function callsEnd(render: Render, turn: string): number {
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
  const common = one.slice(one.length - length);
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
  if (section.open === "") return { open, close: behind.trim() };
  return { open, close, section };
}
