import type { NamedCall } from "../format.ts";
import type { Reading } from "./cursor.ts";
import { CallAtHand } from "./desk.ts";
import type { CallDesk, CallOutcome } from "./desk.ts";
import { failCall } from "./fail-call.ts";
import { readHead } from "./read-head.ts";
import { python, readLiteral } from "./read-literal.ts";

const nameForm = /^[\p{L}_][\p{L}\p{N}_.-]*$/u;
const nameStart = /[\p{L}_]/u;

/** Reads `f(a=1), g(b="x")` with or without brackets, the `[` passed if there is one; or a call a line. */
export function* readPythonCalls(desk: CallDesk, call: NamedCall, bracket: boolean): Reading<CallOutcome> {
  const { cursor, output } = desk;
  for (let first = true; ; first = false) {
    const outcome = yield* readPythonCall(desk, call);
    if (outcome !== "read") return first ? outcome : "read";
    let code = yield* cursor.skipSpace();
    if (code === 44) {
      cursor.pos++;
      code = yield* cursor.skipSpace();
    }
    if (bracket && code === 93) {
      cursor.pos++;
      output.closer(cursor.take());
      return "read";
    }
    if (code < 0 || !nameStart.test(String.fromCharCode(code))) return "read";
  }
}

function* readPythonCall(desk: CallDesk, call: NamedCall): Reading<CallOutcome> {
  const { cursor } = desk;
  const head = yield* readHead(desk, call);
  if (head === null || !nameForm.test(head.name)) return "none";
  const atHand = new CallAtHand(desk, head.name, head.id);
  for (let first = true; ; first = false) {
    let code = yield* cursor.skipSpace();
    if (!first && code === 44) {
      cursor.pos++;
      code = yield* cursor.skipSpace();
    } else if (!first && code !== 41) return yield* failCall(desk, atHand);
    if (code === 41) {
      cursor.pos++;
      atHand.json(first ? "{}" : "}");
      atHand.end("succeeded");
      return "read";
    }
    const key = yield* readKeyword(desk);
    if (key === null) return yield* failCall(desk, atHand);
    // The first character of the value decides that this is a call: it is announced with what comes of the value.
    if ((yield* cursor.skipSpace()) < 0) return yield* failCall(desk, atHand);
    const lead = `${first ? "{" : ","}${JSON.stringify(key)}:`;
    let led = false;
    const sink = {
      write: (json: string, raw: string) => atHand.write(json, raw),
      characters: (kept: number) => atHand.characters(kept),
      json: (text: string) => {
        atHand.json(led ? text : lead + text);
        led = true;
      },
    };
    if (!(yield* readLiteral(cursor, python, sink))) return yield* failCall(desk, atHand);
  }
}

/** `key=`; null: it is not a keyword. */
function* readKeyword(desk: CallDesk): Reading<string | null> {
  const { cursor } = desk;
  let key = "";
  for (;;) {
    const code = yield* cursor.peek();
    if (code < 0 || key.length > 200) return null;
    cursor.pos++;
    if (code === 61) break;
    key += String.fromCharCode(code);
    if (!/^[\p{L}_][\p{L}\p{N}_-]*\s*$/u.test(key)) return null;
  }
  return key.trim();
}
