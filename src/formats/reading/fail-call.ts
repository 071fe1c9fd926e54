import type { Reading } from "./cursor.ts";
import { isSpace } from "./cursor.ts";
import type { CallAtHand, CallDesk, CallOutcome } from "./desk.ts";
import { readToMarker } from "./marker-set.ts";
import { Pile } from "./pile.ts";

export interface Failure {
  /** The fault is in the arguments; else they are complete, and it is in what stands around them. Default true. */
  readonly inArguments?: boolean;
  /** The brackets of the call itself, which stand behind its arguments. */
  readonly brackets?: RegExp;
}

/**
 * Ends a call that turned out bad. If it was announced, the rest of it, up to its close, belongs to it: it is no visible text. Where the
 * arguments are at fault the rest goes out as such, as the model wrote it, so that whoever gets the call can see what was meant. If it
 * was not announced, all of it is pending, and none of it was a call.
 */
export function* failCall(
  desk: CallDesk,
  call: CallAtHand,
  { inArguments = true, brackets }: Failure = {},
): Reading<CallOutcome> {
  if (!call.announced) return "none";
  const { cursor, plan } = desk;
  const { section, calls } = plan.format;
  const closes = plan.set("all closes", () => [
    ...(section?.close ?? []),
    ...calls.flatMap(({ close }) => close ?? []),
  ]);
  if (closes.markers.length > 0) {
    const rest = new Rest();
    const found = yield* readToMarker(cursor, closes, (kept) => {
      const raw = cursor.take(kept);
      call.write(inArguments ? rest.add(raw) : "", raw);
    });
    cursor.pos -= closes.markers[found]?.length ?? 0;
    call.write(rest.end(brackets), "");
  }
  call.end("failed");
  return "failed";
}

/** Text whose end is held back as long as it may be the call's own brackets and white space. */
export class Rest {
  readonly #tail = new Pile();

  /** Gives what is certain not to be the end. */
  add(raw: string): string {
    let end = raw.length;
    while (end > 0 && mayEnd(raw.charCodeAt(end - 1))) end--;
    const text = end === 0 ? "" : this.#tail.take() + raw.slice(0, end);
    this.#tail.add(raw.slice(end));
    return text;
  }

  /** Gives what is left without the brackets and the white space. */
  end(brackets: RegExp | undefined): string {
    const tail = this.#tail.take().trimEnd();
    return brackets ? tail.replace(brackets, "").trimEnd() : tail;
  }
}

/** White space, `}` or `]`. */
function mayEnd(code: number): boolean {
  return code === 125 || code === 93 || isSpace(code);
}
