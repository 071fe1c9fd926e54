import type { NamedCall } from "../format.ts";
import { awaited } from "./cursor.ts";
import type { Reading } from "./cursor.ts";
import type { CallDesk } from "./desk.ts";
import { matchMarker, readToMarker } from "./marker-set.ts";

export interface Head {
  readonly name: string;
  readonly id?: string;
  /** The marker that ended it. */
  readonly end: string;
  /** A tag that is closed in itself: the call has no arguments. */
  readonly empty: boolean;
}

/** Longer is no name. Bounds what is held back for one. */
const longestHead = 400;
/** Characters that end the hope for a name, unless a marker begins with them. */
const notInNames = new Set([..."\n<>{}"].map((character) => character.charCodeAt(0)));

/** Reads a call's head, up to and with what ends it. null: it is no head; the cursor then stands where that became clear. */
export function* readHead(desk: CallDesk, call: NamedCall): Reading<Head | null> {
  const { cursor, plan } = desk;
  const kept = call.headEndKept ?? [];
  const ends = plan.set("head end", () => call.headEnd, call);
  let text = "";
  let marker = "";
  for (;;) {
    let code = cursor.now();
    if (code === awaited) code = yield* cursor.peek();
    if (code < 0) return null;
    if (ends.child(0, code) >= 0) {
      const end = yield* matchMarker(cursor, ends);
      if (end >= 0) {
        marker = ends.markers[end] ?? "";
        if (kept.includes(marker)) cursor.pos -= marker.length;
        break;
      }
    }
    if ((notInNames.has(code) && !headLiteral(call.head, code)) || text.length > longestHead) return null;
    text += cursor.text[cursor.pos];
    cursor.pos++;
  }
  const found = headPattern(call.head).exec(text.trim());
  const name = found?.groups?.["name"]?.trim() ?? "";
  const id = call.headIsId === true ? text.trim() : found?.groups?.["id"]?.trim();
  let empty = false;
  if (call.tagEnd !== undefined) {
    const { tagEnd } = call;
    let attributes = "";
    const found = yield* readToMarker(
      cursor,
      plan.set("tag end", () => [tagEnd, "\n"], call),
      () => {},
    );
    if (found !== 0) return null;
    attributes = cursor.text.slice(0, cursor.pos - tagEnd.length);
    empty = attributes.endsWith("/");
  }
  return { name, empty, end: marker, ...(id !== undefined && id !== "" && { id }) };
}

const patterns = new Map<string, RegExp>();

/** `functions.{name}:{index}` → a pattern in which what stands before and behind the name may miss. */
function headPattern(head: string): RegExp {
  let pattern = patterns.get(head);
  if (!pattern) {
    const [before = "", behind = ""] = head.split("{name}");
    const part = (text: string): string =>
      text === ""
        ? ""
        : `(?:${escapePattern(text).replace("\\{index\\}", "\\d+").replace("\\{id\\}", "(?<id>[^]*?)")})?`;
    pattern = new RegExp(`^${part(before)}(?<name>[^]+?)${part(behind)}$`);
    patterns.set(head, pattern);
  }
  return pattern;
}

function headLiteral(head: string, code: number): boolean {
  return head.replace(/\{\w+\}/g, "").includes(String.fromCharCode(code));
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
