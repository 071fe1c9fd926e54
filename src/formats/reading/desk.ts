import { type ArgumentSink, escapeCharacters } from "./json-scan.ts";
import { type Cursor, isSpace, Pile, type Reading } from "./cursor.ts";
import type { Output } from "./output.ts";
import type { Plan } from "./plan.ts";
import type { ToolTypes } from "./tool-types.ts";
import { matchMarker, readToMarker } from "./marker-set.ts";

/** What every part of the reading works with. */
export interface Desk extends CallDesk {
  readonly output: Output;
  readonly callsAllowed: boolean;
}

/** What the reading of one call works with. */
export interface CallDesk {
  readonly cursor: Cursor;
  readonly output: CallOutput;
  readonly plan: Plan;
  readonly types: ToolTypes;
}

/** Where a call goes: to the events, or into a record while it is not certain to be one. */
export interface CallOutput {
  startCall(name: string, raw: string, id?: string): void;
  callArguments(json: string, raw: string): void;
  endCall(status: "succeeded" | "failed", raw: string): void;
  markup(raw: string): void;
  /** What closes calls that have ended: it shares the fate of the last of them. */
  closer(raw: string): void;
  /** Whether a call of this name is one. */
  isKnown(name: string): boolean;
  /** A call of this name stays text, since it is no tool. */
  unknown(name: string): void;
}

/** A call whose head was read. It is announced when its arguments look like arguments. */
export class CallAtHand implements ArgumentSink {
  readonly name: string;
  announced = false;
  readonly #desk: Pick<CallDesk, "cursor" | "output">;
  readonly #id: string | undefined;

  constructor(desk: Pick<CallDesk, "cursor" | "output">, name: string, id?: string) {
    this.#desk = desk;
    this.name = name;
    this.#id = id;
  }

  announce(): void {
    if (this.announced) return;
    this.announced = true;
    this.#desk.output.startCall(this.name, this.#desk.cursor.take(), this.#id);
  }

  write(json: string, raw: string): void {
    if (json !== "" || raw !== "") this.#desk.output.callArguments(json, raw);
  }

  json(text: string): void {
    this.announce();
    this.write(text, this.#desk.cursor.take());
  }

  characters(kept: number): void {
    const raw = this.#desk.cursor.take(kept);
    this.write(escapeCharacters(raw), raw);
  }

  end(status: "succeeded" | "failed"): void {
    this.announce();
    this.#desk.output.endCall(status, this.#desk.cursor.take());
  }
}

/** How a part of the reading that tried to read a call came out. "none": nothing went out, all that was passed is pending. */
export type CallOutcome = "read" | "failed" | "none";

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

/** Passes the opening or closing line of a Markdown code fence. Gives whether there was one. */
export function* passFence(desk: CallDesk): Reading<boolean> {
  const { cursor, plan } = desk;
  return (
    (yield* matchMarker(
      cursor,
      plan.set("fence", () => ["```json", "```JSON", "```"]),
    )) >= 0
  );
}

/** Keeps what a call would have sent, until it is certain to be one. */
class Recorder implements CallOutput {
  readonly #steps: ((output: CallOutput) => void)[] = [];
  readonly #raw: string[] = [];
  readonly #output: CallOutput;

  constructor(output: CallOutput) {
    this.#output = output;
  }

  startCall(name: string, raw: string, id?: string): void {
    this.#raw.push(raw);
    this.#steps.push((output) => output.startCall(name, raw, id));
  }

  callArguments(json: string, raw: string): void {
    this.#raw.push(raw);
    this.#steps.push((output) => output.callArguments(json, raw));
  }

  endCall(status: "succeeded" | "failed", raw: string): void {
    this.#raw.push(raw);
    this.#steps.push((output) => output.endCall(status, raw));
  }

  markup(raw: string): void {
    this.#raw.push(raw);
    this.#steps.push((output) => output.markup(raw));
  }

  closer(raw: string): void {
    this.#raw.push(raw);
    this.#steps.push((output) => output.closer(raw));
  }

  isKnown(name: string): boolean {
    return this.#output.isKnown(name);
  }

  unknown(name: string): void {
    this.#output.unknown(name);
  }

  replay(): void {
    for (const step of this.#steps) step(this.#output);
  }

  get raw(): string {
    return this.#raw.join("");
  }
}

/**
 * Reads calls that are not certain before their end, and lets them out when they are; `sure` says whether they are, where that takes
 * more than that they were read. Otherwise all of it is pending again.
 */
export function* recordCall(
  desk: CallDesk,
  read: (recording: CallDesk) => Reading<CallOutcome>,
  sure?: () => Reading<boolean>,
): Reading<CallOutcome> {
  const recorder = new Recorder(desk.output);
  const outcome = yield* read({ ...desk, output: recorder });
  if (outcome === "read" && (!sure || (yield* sure()))) {
    recorder.replay();
    return "read";
  }
  desk.cursor.giveBack(recorder.raw);
  return "none";
}
