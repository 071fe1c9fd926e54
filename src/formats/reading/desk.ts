import type { ArgumentSink } from "./argument-sink.ts";
import { escapeCharacters } from "./argument-sink.ts";
import type { Cursor } from "./cursor.ts";
import type { Output } from "./output.ts";
import type { Plan } from "./plan.ts";
import type { ToolTypes } from "./tool-types.ts";

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
